import { expect, it } from 'vitest';
import { NO_UPSTREAM_URL, type Replica, startReplica, upstreamsAt } from '../replica.ts';

const UPSTREAM = upstreamsAt(NO_UPSTREAM_URL);

async function told({ metrics }: Replica, name: string): Promise<number> {
  const text = await metrics.registry.metrics();
  return Number(new RegExp(`^${name} (\\d)$`, 'm').exec(text)?.[1]);
}

it('a replica is ready until it drains', async () => {
  const replica = await startReplica(UPSTREAM);
  expect(await told(replica, 'holdfast_ready')).toBe(1);
  await replica.server.drain();
  expect(await told(replica, 'holdfast_ready')).toBe(0);
});

it.each([
  ['fail', 0],
  ['warn', 1],
])('on_unreachable: %s, and a store that does not work', async (on_unreachable, ready) => {
  const replica = await startReplica({ ...UPSTREAM, checkpoint: { store: 'memory', on_unreachable } });
  replica.metrics.storeWorks = false;
  expect(await told(replica, 'holdfast_store_up')).toBe(0);
  expect(await told(replica, 'holdfast_ready')).toBe(ready);
  replica.metrics.storeWorks = true;
  expect(await told(replica, 'holdfast_store_up')).toBe(1);
  expect(await told(replica, 'holdfast_ready')).toBe(1);
});
