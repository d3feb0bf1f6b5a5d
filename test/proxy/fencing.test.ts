import { describe, expect, test } from 'vitest';
import type { Plan } from '../provider/script.ts';
import { Fleet, payloadsOf, type Replica } from '../simulation/fleet.ts';
import { DEFAULTS, OWNER, RUN } from '../simulation/simulate.ts';
import { readStream } from '../simulation/stream-reading.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const CALL = { id: 'call_1', name: 'tides', arguments: '{"port":"Brest","days":[1,2,3]}' };
/** Shorter than what may follow a finish reason is waited for. */
const lease_ms = 1_500;
/** The provider falls silent for longer than a lease; to a replica that was stopped it looks the same. */
const PAUSED: Plan = {
  parts: [{ text: TEXT }],
  faults: [{ kind: 'silence', at: { event: 5 }, for_ms: lease_ms + 1_000 }],
};

async function takeFrom(fleet: Fleet, { context }: Replica): Promise<void> {
  const { epoch } = await fleet.stored();
  await context.store.acquire(RUN, OWNER, epoch);
}

describe.each(['interval', 'write_ahead'] as const)('with %s durability', (durability) => {
  const configuration = { checkpoint: { ...DEFAULTS.checkpoint, durability, lease_ms } };

  test('a replica that comes to itself after its run was taken delivers nothing more', async () => {
    const fleet = new Fleet(PAUSED, { configuration });
    const paused = fleet.begin(fleet.replica());
    await fleet.pass(1_000);
    const had = paused.client.body;
    expect(readStream(had.replaceAll(/^id: .*\n/gm, '')).text).toBe('Kelp grips the rock');
    const second = await fleet.follow(fleet.replica());
    await takeFrom(fleet, fleet.replica());

    expect(await fleet.time.drive(paused.outcome)).toBe('superseded');
    expect(paused.client.body).toBe(had);
    expect([paused.client.destroyed, paused.client.ended]).toEqual([true, false]);
    expect(fleet.provider.requests[0]?.aborted).toBe(true);
    second.leave();
  });

  // Not every event is one for the client: a role waits for content, and a call for its end.
  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'a process that was stopped after event %i delivers nothing more',
    async (events) => {
      const parts = [{ text: 'Kelp' }, { tool: CALL }, { text: TEXT }];
      const fleet = new Fleet({ parts }, { configuration, pace_ms: 60 });
      const stopped = fleet.begin(fleet.replica());
      await fleet.pass(60 * events + 10);
      const had = stopped.client.body;
      fleet.time.skip(lease_ms + 500);
      // What it wakes up to, it wakes up to after its successor was there.
      await takeFrom(fleet, fleet.replica());

      expect(await fleet.time.drive(stopped.outcome)).toBe('superseded');
      expect(stopped.client.body).toBe(had);
      expect(stopped.client.destroyed || !stopped.client.opened).toBe(true);
    },
  );

  test('a replica that keeps its run continues after any silence', async () => {
    const fleet = new Fleet(PAUSED, { configuration });
    const { client, outcome } = fleet.begin(fleet.replica(), { resumable: false });

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, violations: [] });
  });

  test('what would end the answer is not delivered either', async () => {
    const ends: Plan = {
      parts: [{ text: TEXT }],
      faults: [{ kind: 'silence', at: { after_finish: true }, for_ms: lease_ms + 1_000 }],
    };
    const fleet = new Fleet(ends, { configuration });
    const paused = fleet.begin(fleet.replica());
    await fleet.pass(1_000);
    await takeFrom(fleet, fleet.replica());

    expect(await fleet.time.drive(paused.outcome)).toBe('superseded');
    expect(payloadsOf(paused.client.body)).not.toContain('[DONE]');
    expect(paused.client.ended).toBe(false);
  });

  test('a failing store keeps no run from continuing', async () => {
    const fleet = new Fleet(PAUSED, { configuration });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica, { resumable: false });
    await fleet.pass(1_000);
    replica.context.store.append = async () => {
      throw new Error('the store is down');
    };

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, violations: [] });
  });
});
