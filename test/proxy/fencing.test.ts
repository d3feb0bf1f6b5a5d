import { describe, expect, test } from 'vitest';
import { salvagedRun } from '../../src/checkpoint/salvaged-run.ts';
import { leaveThreadNote, salvageNote, threadKey } from '../../src/proxy/run/notices/thread-notice.ts';
import type { Plan } from '../provider/script.ts';
import { Fleet, payloadsOf, type Replica } from '../simulation/fleet.ts';
import { DEFAULTS, OWNER, RUN } from '../simulation/simulate.ts';
import { readStream } from '../simulation/stream-reading.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const CALL = { id: 'call_1', name: 'tides', arguments: '{"port":"Brest","days":[1,2,3]}' };
/** Shorter than the wait for events after a finish reason. */
const lease_ms = 1_500;
/** The provider is silent for longer than a lease. A replica that was paused itself sees the same. */
const PAUSED: Plan = {
  parts: [{ text: TEXT }],
  faults: [{ kind: 'silence', at: { event: 5 }, for_ms: lease_ms + 1_000 }],
};

/** For this long, appends to the store time out. */
function failFor(fleet: Fleet, { context: { store } }: Replica, for_ms: number): void {
  const until_ms = fleet.time.now() + for_ms;
  const append = store.append.bind(store);
  store.append = async (...call) => {
    if (fleet.time.now() < until_ms) throw new Error('Command timed out');
    return append(...call);
  };
}

/** Another replica, which couldn't hear the holder, finalises the run `takes_ms` after taking it over. */
async function salvage(fleet: Fleet, { context }: Replica, takes_ms: number = 0): Promise<void> {
  const orphan = await fleet.stored();
  const lease = await context.store.acquire(RUN, OWNER, orphan.epoch);
  if (takes_ms > 0) await fleet.pass(takes_ms);
  const salvaged = salvagedRun(RUN, OWNER, orphan, fleet.time.wall());
  const note = salvageNote(salvaged);
  const thread = salvaged.journal.header?.thread;
  if (note && thread) await leaveThreadNote(context.store.notes, OWNER, thread, note, 3_600_000);
  await context.store.finish(lease, salvaged.end);
}

/** Without keep-alive comments. */
const contentOf = (body: string): string => body.replaceAll(/^:.*\n\n?/gm, '');

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

  // The last sign of life, from which the lease counts, may be a third of a lease older than the last event.
  test.each([0.7, 0.8, 0.9, 0.99, 1.1])(
    'a replica whose provider was silent for %f of a lease says nothing that a successor may contradict',
    async (leases) => {
      const for_ms = lease_ms * leases;
      const plan: Plan = { parts: [{ text: TEXT }], faults: [{ kind: 'silence', at: { event: 5 }, for_ms }] };
      const fleet = new Fleet(plan, { configuration });
      const slow = fleet.begin(fleet.replica());
      await fleet.pass((lease_ms * 2) / 3);
      const had = slow.client.body;
      expect(readStream(had.replaceAll(/^id: .*\n/gm, '')).text).toBe('Kelp grips the rock');
      await takeFrom(fleet, fleet.replica());

      expect(await fleet.time.drive(slow.outcome)).toBe('superseded');
      expect(slow.client.body).toBe(had);
      expect([slow.client.destroyed, slow.client.ended]).toEqual([true, false]);
    },
  );

  // Not every event reaches the client: a role waits for content, and a call for its end.
  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'a process that was stopped after event %i delivers nothing more',
    async (events) => {
      const parts = [{ text: 'Kelp' }, { tool: CALL }, { text: TEXT }];
      const fleet = new Fleet({ parts }, { configuration, pace_ms: 60 });
      const stopped = fleet.begin(fleet.replica());
      await fleet.pass(60 * events + 10);
      const had = stopped.client.body;
      fleet.time.skip(lease_ms + 500);
      // Everything that happens when the process wakes up happens after the takeover.
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

  // When the process wakes up, the timers of pending operations fire before it reads the answers that have arrived.
  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'a process that was stopped after event %i delivers nothing more where its calls of the store run out at first',
    async (events) => {
      const parts = [{ text: 'Kelp' }, { tool: CALL }, { text: TEXT }];
      const fleet = new Fleet({ parts }, { configuration, pace_ms: 60 });
      const replica = fleet.replica();
      const stopped = fleet.begin(replica);
      await fleet.pass(60 * events + 10);
      const had = stopped.client.body;
      fleet.time.skip(lease_ms + 500);
      await takeFrom(fleet, fleet.replica());
      failFor(fleet, replica, 5_000);

      expect(await fleet.time.drive(stopped.outcome)).toBe('superseded');
      expect(contentOf(stopped.client.body)).toBe(contentOf(had));
      expect(stopped.client.destroyed || !stopped.client.opened).toBe(true);
    },
  );

  test('a process that was stopped while its answer ended ends nothing that another replica has', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration, pace_ms: 20 });
    const replica = fleet.replica();
    const stopped = fleet.begin(replica);
    await fleet.pass(60);
    const had = stopped.client.body;
    fleet.time.skip(lease_ms * 3);
    await takeFrom(fleet, fleet.replica());
    failFor(fleet, replica, 2_500);

    expect(await fleet.time.drive(stopped.outcome)).toBe('superseded');
    expect(contentOf(stopped.client.body)).toBe(contentOf(had));
    expect(stopped.client.ended).toBe(false);
  });

  // The takeover was decided before the first sign of life after waking up.
  test.each([50, 70, 90, 110, 130, 150, 170])(
    'a process that was stopped and woke up shows nothing after a takeover %i ms later',
    async (awake_ms) => {
      const parts = [{ text: `${TEXT} ${TEXT}` }];
      const fleet = new Fleet({ parts }, { configuration, pace_ms: 30 });
      const stopped = fleet.begin(fleet.replica());
      await fleet.pass(30 * 4 + 10);
      fleet.time.skip(lease_ms + 500);
      const before = stopped.client.body;
      await fleet.pass(awake_ms);
      const had = stopped.client.body;
      expect(had.length).toBeGreaterThan(before.length);
      await takeFrom(fleet, fleet.replica());

      expect(await fleet.time.drive(stopped.outcome)).toBe('superseded');
      expect(contentOf(stopped.client.body)).toBe(contentOf(had));
      expect(stopped.client.ended).toBe(false);
    },
  );

  test('a process that was stopped continues once the store confirms that nothing was taken from it', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration, pace_ms: 20 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica, { resumable: false });
    await fleet.pass(60);
    fleet.time.skip(lease_ms * 3);
    failFor(fleet, replica, 10_000);

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, violations: [] });
  });

  test('a process that was stopped ends its run without an end where the store confirms nothing for long', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration, pace_ms: 20 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica);
    await fleet.pass(60);
    const had = client.body;
    fleet.time.skip(lease_ms * 3);
    failFor(fleet, replica, 3_600_000);

    expect(await fleet.time.drive(outcome)).toBe('superseded');
    expect(contentOf(client.body)).toBe(contentOf(had));
    expect([client.destroyed || !client.opened, client.ended]).toEqual([true, false]);
    // Half a minute for the proof, and the time that handing over may take.
    expect(fleet.time.now()).toBeLessThan(lease_ms * 3 + 30_000 + 11_000 + 1_000);
  });

  test('a client that leaves while the store confirms nothing ends its run at once', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration, pace_ms: 20 });
    const replica = fleet.replica();
    const { outcome, leave } = fleet.begin(replica, { resumable: false });
    await fleet.pass(60);
    fleet.time.skip(lease_ms * 3);
    failFor(fleet, replica, 20_000);
    await fleet.pass(1_000);
    const left_ms = fleet.time.now();
    leave();

    expect(await fleet.time.drive(outcome)).toBe('cancelled');
    expect(fleet.time.now() - left_ms).toBeLessThan(11_000);
  });
});

test('with interval durability a failing store keeps no run from continuing', async () => {
  const fleet = new Fleet(PAUSED, { configuration: { checkpoint: { ...DEFAULTS.checkpoint, lease_ms } } });
  const replica = fleet.replica();
  const { client, outcome } = fleet.begin(replica, { resumable: false });
  await fleet.pass(1_000);
  failFor(fleet, replica, 3_600_000);

  expect(await fleet.time.drive(outcome)).toBe('complete');
  expect(readStream(client.body)).toMatchObject({ text: TEXT, violations: [] });
});

describe('with write_ahead durability, of a store that fails in the middle of an answer,', () => {
  const configuration = {
    checkpoint: { ...DEFAULTS.checkpoint, durability: 'write_ahead' as const, lease_ms },
  };

  test('an answer waits as long as that may pass, and continues', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration, pace_ms: 20 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica, { resumable: false });
    await fleet.pass(60);
    failFor(fleet, replica, 20_000);
    const had = client.body;
    await fleet.pass(19_000);
    expect(contentOf(client.body)).toBe(contentOf(had));

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, violations: [] });
  });

  test('an answer is broken off where that does not pass, and the client has nothing that the store has not', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration, pace_ms: 20 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica);
    await fleet.pass(60);
    failFor(fleet, replica, 3_600_000);

    expect(await fleet.time.drive(outcome)).toBe('superseded');
    expect([client.destroyed, client.ended]).toEqual([true, false]);
    const shown = readStream(client.body.replaceAll(/^id: .*\n/gm, '')).text;
    expect((await fleet.journal()).text.startsWith(shown)).toBe(true);
  });
});

describe('a run that others have salvaged while its replica could not reach the store', () => {
  const checkpoint = { ...DEFAULTS.checkpoint, lease_ms };
  const thread = 'kelp';

  const noteOf = (fleet: Fleet) => fleet.replica().context.store.notes.get(OWNER, threadKey(thread));

  async function cutOff(fleet: Fleet, replica: Replica, isStopped: boolean): Promise<void> {
    await fleet.pass(60 * 5 + 10);
    failFor(fleet, replica, 200);
    if (isStopped) fleet.time.skip(lease_ms * 2);
  }

  test.each([false, true])(
    'is delivered to its end, since no client has got anything else of it (its process was stopped: %s)',
    async (isStopped) => {
      const fleet = new Fleet(
        { parts: [{ text: TEXT }] },
        { configuration: { checkpoint }, pace_ms: 60, thread },
      );
      const replica = fleet.replica();
      const { client, outcome } = fleet.begin(replica, { resumable: false });
      await cutOff(fleet, replica, isStopped);
      await salvage(fleet, fleet.replica());
      expect(await noteOf(fleet)).toContain(RUN);

      expect(await fleet.time.drive(outcome)).toBe('complete');
      expect(readStream(client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
      expect(await noteOf(fleet)).toBeUndefined();
      expect(await fleet.stored()).toMatchObject({ status: 'recovered_from_partial' });
    },
  );

  test('is delivered, too, where its replica hears that it was taken over before it is finalised', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration: { checkpoint }, pace_ms: 60 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica, { resumable: false });
    await cutOff(fleet, replica, false);
    await salvage(fleet, fleet.replica(), 600);

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
  });

  test('is not, with write_ahead durability: its client would have what the store has not', async () => {
    const configuration = { checkpoint: { ...checkpoint, durability: 'write_ahead' as const } };
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration, pace_ms: 60 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica, { resumable: false });
    await cutOff(fleet, replica, false);
    await salvage(fleet, fleet.replica());

    expect(await fleet.time.drive(outcome)).toBe('superseded');
    expect([client.destroyed, client.ended]).toEqual([true, false]);
  });

  test('is not, where another replica has delivered more of it before that', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration: { checkpoint }, pace_ms: 60 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica);
    await cutOff(fleet, replica, false);
    const { context } = fleet.replica();
    const { epoch, seq } = await fleet.stored();
    const lease = await context.store.acquire(RUN, OWNER, epoch);
    await context.store.append(lease, [
      { seq: seq + 1, at_ms: 0, events: [{ deltas: [{ kind: 'text', text: 'Kelp' }] }] },
    ]);
    await context.store.finish(lease, { status: 'recovered_from_partial', at_ms: 0, cause: 'replica_lost' });

    expect(await fleet.time.drive(outcome)).toBe('superseded');
    expect(client.ended).toBe(false);
  });

  test('is not, where it was cancelled', async () => {
    const fleet = new Fleet({ parts: [{ text: TEXT }] }, { configuration: { checkpoint }, pace_ms: 60 });
    const replica = fleet.replica();
    const { client, outcome } = fleet.begin(replica);
    await cutOff(fleet, replica, false);
    const { context } = fleet.replica();
    const lease = await context.store.acquire(RUN, OWNER, (await fleet.stored()).epoch);
    await context.store.finish(lease, { status: 'cancelled', at_ms: 0 });

    expect(await fleet.time.drive(outcome)).toBe('superseded');
    expect(client.ended).toBe(false);
  });
});
