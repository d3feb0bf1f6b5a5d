import { describe, expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../src/checkpoint/file-store.ts';
import { MemoryStore } from '../../src/checkpoint/memory-store.ts';
import type { Lease, RunId, Store } from '../../src/checkpoint/store.ts';
import { AcquireRefusedError, JournalGapError, StaleLeaseError } from '../../src/checkpoint/store.ts';
import { systemTime } from '../../src/time.ts';
import {
  HEADER_RECORD,
  LEASE_TTL_MS,
  newRunId,
  OWNER,
  SMALL_RUN,
  STRANGER,
  temporaryDirectory,
  textOf,
  textRecord,
} from './fixtures.ts';

const TTL_MS = 3_600_000;

const stores: Record<string, () => Store> = {
  memory: () => new MemoryStore({ time: systemTime, ttl_ms: TTL_MS }),
  file: () =>
    new FileStore({
      dir: temporaryDirectory(),
      fsync: 'never',
      ttl_ms: TTL_MS,
      onError: (error) => expect.unreachable(error.message),
    }),
};

describe.each(Object.keys(stores))('the %s store', (name) => {
  function open(): Store {
    const store = stores[name]?.() as Store;
    onTestFinished(() => store.close());
    return store;
  }

  async function begin(store: Store, run: RunId = newRunId()): Promise<Lease> {
    const lease = await store.acquire(run, OWNER, LEASE_TTL_MS);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'a', 'b')]);
    return lease;
  }

  test('gives back what was appended, while the run goes on and after it', async () => {
    const store = open();
    const run = newRunId();
    const lease = await store.acquire(run, OWNER, LEASE_TTL_MS);
    expect(lease).toEqual({ run, owner: OWNER, epoch: 1 });
    for (const record of SMALL_RUN) expect(await store.append(lease, [record])).toBe(record.seq);
    expect(await store.read(run, OWNER, 0)).toEqual({ status: 'running', seq: 7, records: SMALL_RUN });
    await store.finish(lease, 'complete');
    expect(await store.read(run, OWNER, 0)).toEqual({ status: 'complete', seq: 7, records: SMALL_RUN });
  });

  test('reads from a cursor on, beginning with the record it points into', async () => {
    const store = open();
    const { run } = await begin(store);
    expect((await store.read(run, OWNER, 1))?.records).toEqual([textRecord(0, 'a', 'b')]);
    expect(await store.read(run, OWNER, 2)).toEqual({ status: 'running', seq: 2, records: [] });
    expect(await store.read(run, OWNER, 9)).toEqual({ status: 'running', seq: 2, records: [] });
  });

  test('knows a run without records', async () => {
    const store = open();
    const lease = await store.acquire(newRunId(), OWNER, LEASE_TTL_MS);
    expect(await store.read(lease.run, OWNER, 0)).toEqual({ status: 'running', seq: 0, records: [] });
    await store.finish(lease, 'failed');
    expect(await store.read(lease.run, OWNER, 0)).toEqual({ status: 'failed', seq: 0, records: [] });
  });

  test('answers alike for unknown and foreign runs', async () => {
    const store = open();
    const { run } = await begin(store);
    expect(await store.read(newRunId(), OWNER, 0)).toBeNull();
    expect(await store.read(run, STRANGER, 0)).toBeNull();
  });

  test('refuses a stranger who wants a run, and leaves its holder undisturbed', async () => {
    const store = open();
    const lease = await begin(store);
    await expect(store.acquire(lease.run, STRANGER, LEASE_TTL_MS)).rejects.toMatchObject({
      reason: 'foreign',
    });
    expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
  });

  test('fences the older lease when a run is taken over', async () => {
    const store = open();
    const older = await begin(store);
    const newer = await store.acquire(older.run, OWNER, LEASE_TTL_MS);
    expect(newer.epoch).toBe(2);
    await expect(store.append(older, [textRecord(2, 'stale')])).rejects.toBeInstanceOf(StaleLeaseError);
    await expect(store.finish(older, 'failed')).rejects.toBeInstanceOf(StaleLeaseError);
    expect(await store.append(newer, [textRecord(2, 'c')])).toBe(3);
    await store.finish(newer, 'complete');
    const stored = await store.read(older.run, OWNER, 0);
    expect(stored).toMatchObject({ status: 'complete', seq: 3 });
    expect(textOf(stored?.records ?? [])).toBe('abc');
    await expect(store.finish(older, 'failed')).rejects.toBeInstanceOf(StaleLeaseError);
  });

  test('skips records it has when a batch is sent again', async () => {
    const store = open();
    const lease = await begin(store);
    expect(await store.append(lease, [textRecord(0, 'a', 'b'), textRecord(2, 'c')])).toBe(3);
    expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
    expect(textOf((await store.read(lease.run, OWNER, 0))?.records ?? [])).toBe('abc');
  });

  test('refuses a gap and goes on from where it was', async () => {
    const store = open();
    const lease = await begin(store);
    await expect(store.append(lease, [textRecord(3, 'd')])).rejects.toBeInstanceOf(JournalGapError);
    await expect(store.append(lease, [textRecord(1, 'x', 'y')])).rejects.toBeInstanceOf(JournalGapError);
    expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
  });

  test('keeps appends in order that did not wait for one another', async () => {
    const store = open();
    const lease = await begin(store);
    const letters = [...'cdefghij'];
    const seqs = await Promise.all(
      letters.map((letter, i) => store.append(lease, [textRecord(2 + i, letter)])),
    );
    expect(seqs).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
    await store.finish(lease, 'complete');
    expect(textOf((await store.read(lease.run, OWNER, 0))?.records ?? [])).toBe('abcdefghij');
  });

  test('goes on behind an append that was refused', async () => {
    const store = open();
    const lease = await begin(store);
    const appends = [[textRecord(2, 'c')], [textRecord(9, 'x')], [textRecord(2, 'c')], [textRecord(3, 'd')]];
    const results = await Promise.allSettled(appends.map((records) => store.append(lease, records)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    await store.finish(lease, 'complete');
    expect(textOf((await store.read(lease.run, OWNER, 0))?.records ?? [])).toBe('abcd');
  });

  test('keeps the first status of a run that is finished twice', async () => {
    const store = open();
    const lease = await begin(store);
    await store.finish(lease, 'complete');
    await store.finish(lease, 'failed');
    expect(await store.read(lease.run, OWNER, 0)).toMatchObject({ status: 'complete' });
  });

  test('has nothing appended to a finished run, by whomever', async () => {
    const store = open();
    const lease = await begin(store);
    await store.finish(lease, 'complete');
    await expect(store.append(lease, [textRecord(2, 'c')])).rejects.toBeInstanceOf(StaleLeaseError);
    await expect(store.acquire(lease.run, OWNER, LEASE_TTL_MS)).rejects.toMatchObject({ reason: 'finished' });
    await expect(store.acquire(lease.run, STRANGER, LEASE_TTL_MS)).rejects.toMatchObject({
      reason: 'foreign',
    });
  });

  test.each([
    'run_../../../etc/passwd.......',
    'run_short',
    'RUN_aaaaaaaaaaaaaaaaaaaaaa',
    `run_${'a'.repeat(99)}`,
  ])('does not know the run id %s', async (id) => {
    const store = open();
    const refused = store.acquire(id as RunId, OWNER, LEASE_TTL_MS);
    await expect(refused).rejects.toBeInstanceOf(AcquireRefusedError);
    expect(await store.read(id as RunId, OWNER, 0)).toBeNull();
  });

  test('keeps many runs apart', async () => {
    const store = open();
    const leases = await Promise.all(Array.from({ length: 50 }, () => begin(store)));
    await Promise.all(leases.map((lease) => store.append(lease, [textRecord(2, lease.run)])));
    for (const { run } of leases) {
      expect(textOf((await store.read(run, OWNER, 0))?.records ?? [])).toBe(`ab${run}`);
    }
  });

  test('can be asked whether it works', async () => {
    await expect(open().check()).resolves.toBeUndefined();
  });
});
