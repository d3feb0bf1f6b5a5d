import { describe, expect, test } from 'vitest';
import type { Plan } from '../provider/script.ts';
import { Fleet, payloadsOf, type Replica } from '../simulation/fleet.ts';
import { OWNER, RUN } from '../simulation/simulate.ts';
import { readStream } from '../simulation/stream-reading.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const PLAN: Plan = { parts: [{ text: TEXT }] };
const PACE_MS = 50;

/** A run whose replica was lost after about five events. */
async function lost() {
  const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
  const first = fleet.replica();
  fleet.begin(first);
  await fleet.pass(PACE_MS * 6 + 150);
  first.life.kill();
  return fleet;
}

/**
 * Calls `happen` when the store has let this replica take over the run for the first time, before the replica knows.
 */
function onAcquired({ context: { store } }: Replica, happen: () => void | Promise<void>): void {
  const acquire = store.acquire.bind(store);
  store.acquire = async (...call) => {
    const lease = await acquire(...call);
    store.acquire = acquire;
    await happen();
    return lease;
  };
}

/** Makes the replica fail through a fault of its own. */
function breakTransport({ context: { transport } }: Replica): void {
  transport.open = async () => {
    throw new TypeError('a bug');
  };
}

// A living replica keeps all others from a run that it holds, whether or not it delivers the run.
describe('a run that its replica cannot continue is let go', () => {
  test('when the store fails right after it was taken over', async () => {
    const fleet = await lost();
    const replica = fleet.replica();
    const { store } = replica.context;
    const read = store.read.bind(store);
    onAcquired(replica, () => {
      store.read = async () => {
        store.read = read;
        throw new Error('the store is down');
      };
    });
    const { client, outcome } = await fleet.follow(replica);

    expect(await fleet.time.drive(outcome, 60_000)).toBe('recovered');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
  });

  test('when its delivery fails after it was taken over', async () => {
    const fleet = await lost();
    const replica = fleet.replica();
    breakTransport(replica);
    const { outcome } = await fleet.follow(replica);

    await expect(fleet.time.drive(outcome)).rejects.toThrow('a bug');
    expect((await fleet.stored()).holder).toEqual({ state: 'released' });
    const again = await fleet.follow(fleet.replica());
    expect(await fleet.time.drive(again.outcome, 60_000)).toBe('recovered');
  });

  test('when its delivery fails on the replica that began it', async () => {
    const fleet = new Fleet(PLAN);
    const replica = fleet.replica();
    breakTransport(replica);
    const { outcome } = fleet.begin(replica);

    await expect(fleet.time.drive(outcome)).rejects.toThrow('a bug');
    expect((await fleet.stored()).holder).toEqual({ state: 'released' });
  });

  test('when the client that it was taken over for has gone meanwhile', async () => {
    const fleet = await lost();
    const replica = fleet.replica();
    const { outcome, leave } = await fleet.follow(replica);
    onAcquired(replica, () => leave());

    expect(await fleet.time.drive(outcome)).toBe('cancelled');
    expect(await fleet.stored()).toMatchObject({ status: 'running', holder: { state: 'released' } });
    expect(fleet.provider.requests).toHaveLength(1);
  });

  test('when it is cancelled at the moment in which it is taken over', async () => {
    const fleet = await lost();
    const replica = fleet.replica();
    const other = fleet.replica();
    onAcquired(replica, async () => {
      const { store } = other.context;
      const lease = await store.acquire(RUN, OWNER, (await fleet.stored()).epoch);
      await store.finish(lease, { status: 'cancelled', at_ms: 1 });
    });
    const { client, outcome } = await fleet.follow(replica);

    expect(await fleet.time.drive(outcome)).toBe('failed');
    expect(fleet.provider.requests).toHaveLength(1);
    expect(payloadsOf(client.body).at(-1)).toContain('run_cancelled');
  });
});
