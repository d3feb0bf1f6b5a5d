import { describe, expect, test } from 'vitest';
import type { Lease } from '../../../src/checkpoint/store.ts';
import type { Plan } from '../../provider/script.ts';
import { Fleet, type Replica } from '../../simulation/fleet.ts';
import { DEFAULTS } from '../../simulation/simulate.ts';
import { readStream } from '../../simulation/stream-reading.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const PLAN: Plan = { parts: [{ text: TEXT }] };
/** How long the end of a run may take if the store doesn't answer. */
const END_MS = 11_000;

/** Makes the store withhold its lease until the returned function is called. */
function holdLease({ context: { store } }: Replica): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  const acquire = store.acquire.bind(store);
  store.acquire = async (...call): Promise<Lease> => {
    await promise;
    return acquire(...call);
  };
  return resolve;
}

const WRITE_AHEAD = { checkpoint: { ...DEFAULTS.checkpoint, durability: 'write_ahead' as const } };

describe('a store that gives no lease, with interval durability', () => {
  const configuration = DEFAULTS;

  test('holds up neither the answer nor its end for ever', async () => {
    const fleet = new Fleet(PLAN, { configuration });
    const replica = fleet.replica();
    holdLease(replica);
    const { client, outcome } = fleet.begin(replica);

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(readStream(client.body.replaceAll(/^id: .*\n/gm, ''))).toMatchObject({ text: TEXT, done: true });
    expect(fleet.time.now()).toBeLessThan(END_MS + 1_000);
  });

  test('and gives it after all is given the whole journal', async () => {
    const fleet = new Fleet(PLAN, { configuration });
    const replica = fleet.replica();
    const give = holdLease(replica);
    const { outcome } = fleet.begin(replica);
    await fleet.time.drive(outcome);
    give();
    await fleet.pass(1_000);

    expect(await fleet.stored()).toMatchObject({ status: 'complete' });
    expect((await fleet.journal()).text).toBe(TEXT);
  });
});

test.each(['interval', 'write_ahead'] as const)(
  'a store that gives no lease, with %s, holds up a run that is handed over no longer',
  async (durability) => {
    const fleet = new Fleet(
      { ...PLAN, faults: [{ kind: 'silence', at: { event: 4 }, for_ms: 60_000 }] },
      { configuration: { checkpoint: { ...DEFAULTS.checkpoint, durability } } },
    );
    const replica = fleet.replica();
    holdLease(replica);
    const { outcome, leave } = fleet.begin(replica);
    await fleet.pass(5_000);
    leave();

    expect(await fleet.time.drive(outcome)).toBe('cancelled');
    expect(fleet.time.now()).toBeLessThan(5_000 + END_MS);
  },
);

describe('a store that gives no lease, with write_ahead durability,', () => {
  test('holds back every event until it does', async () => {
    const fleet = new Fleet(PLAN, { configuration: WRITE_AHEAD });
    const replica = fleet.replica();
    const give = holdLease(replica);
    const { client, outcome } = fleet.begin(replica);
    await fleet.pass(20_000);
    expect(client.body).not.toContain('data:');
    give();

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(readStream(client.body.replaceAll(/^id: .*\n/gm, '')).text).toBe(TEXT);
    expect((await fleet.journal()).text).toBe(TEXT);
  });

  test('has the run broken off in the end, of which no event was shown', async () => {
    const fleet = new Fleet(PLAN, { configuration: WRITE_AHEAD });
    const replica = fleet.replica();
    holdLease(replica);
    const { client, outcome } = fleet.begin(replica);

    expect(await fleet.time.drive(outcome)).toBe('superseded');
    expect([client.destroyed, client.ended]).toEqual([true, false]);
    expect(client.body).not.toContain('data:');
    expect(fleet.time.now()).toBeLessThan(30_000 + END_MS);
  });
});

test('no client gets anything of a resumable run before its request is stored', async () => {
  const fleet = new Fleet({ ...PLAN, delay_ms: 10 });
  const replica = fleet.replica();
  const give = holdLease(replica);
  const { client } = fleet.begin(replica);
  await fleet.pass(100);
  expect(client.body).toBe('');

  give();
  await fleet.pass(10);
  expect(client.body).toContain('Kelp');
  expect((await fleet.stored())?.records[0]?.header?.body).toBeDefined();
});

test('what waits for a lease is bounded: a run that has said too much meanwhile does without a journal', async () => {
  const fleet = new Fleet({ parts: [{ text: 'kelp '.repeat(300_000) }], chunk: 1_000 });
  const replica = fleet.replica();
  const give = holdLease(replica);
  const { outcome } = fleet.begin(replica);
  await fleet.time.drive(outcome);
  give();
  await fleet.pass(1_000);

  expect(await fleet.stored()).toMatchObject({ seq: 0, holder: { state: 'released' } });
});

test.each(['carried out', 'not carried out'])(
  'a store that failed to give a lease is asked again, whether it was %s or not',
  async (fate) => {
    const fleet = new Fleet({ ...PLAN, delay_ms: 200 });
    const replica = fleet.replica();
    const { store } = replica.context;
    const acquire = store.acquire.bind(store);
    let calls = 0;
    store.acquire = async (...call): Promise<Lease> => {
      calls++;
      if (calls > 2) return acquire(...call);
      if (fate === 'carried out' && calls === 1) await store.release(await acquire(...call));
      throw new Error('the store is away');
    };
    const { outcome } = fleet.begin(replica);

    expect(await fleet.time.drive(outcome)).toBe('complete');
    expect(calls).toBe(3);
    expect(await fleet.stored()).toMatchObject({ status: 'complete' });
    expect((await fleet.journal()).text).toBe(TEXT);
  },
);
