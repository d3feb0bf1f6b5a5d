import { expect, onTestFinished, test, vi } from 'vitest';
import { sleep } from '../../src/lib/time.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import type { Plan } from '../provider/script.ts';
import { type Replica, startReplica } from '../replica.ts';
import { SimulatedProvider } from '../simulation/simulated-provider.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';
import { postChat, UPSTREAM } from './run-deployment.ts';

const PLAN: Plan = { parts: [{ text: 'Kelp grips the rock.' }] };
const NEVER = new AbortController().signal;
/** Longer than the end of a run waits for the store. */
const END_MS = 11_000;

/** A replica that delivers only one run of an owner at a time. Its time stands still until a test advances it. */
async function startNarrow(): Promise<{ replica: Replica; time: VirtualTime }> {
  const time = new VirtualTime();
  const transport = new SimulatedProvider(PLAN, time);
  const replica = await startReplica(
    { ...UPSTREAM, limits: { runs_per_owner: 1 } },
    { relay, transport, time },
  );
  onTestFinished(() => time.drive(sleep(time, END_MS, NEVER)));
  return { replica, time };
}

test('a run whose client has its whole answer keeps no other from beginning, whatever the store does', async () => {
  const { replica, time } = await startNarrow();
  replica.store.fault = new Error('the store is away');
  vi.spyOn(replica.store, 'acquire').mockRejectedValue(replica.store.fault);

  for (let run = 0; run < 3; run++) {
    const response = await postChat(replica);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('data: [DONE]');
  }
  expect(time.now()).toBe(0);
  // They haven't ended, because their events may still be stored.
  expect(await activeRuns(replica)).toBe(3);
  await time.drive(sleep(time, END_MS, NEVER));
  expect(await activeRuns(replica)).toBe(0);
});

async function activeRuns({ admin }: Replica): Promise<number> {
  const metrics = await (await fetch(`${admin}/metrics`)).text();
  return Number(/^holdfast_runs_active (\d+)$/m.exec(metrics)?.[1]);
}
