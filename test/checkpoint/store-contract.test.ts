import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { NoteKey } from '../../src/checkpoint/notes.ts';
import { NOTE_CHARACTERS_MAX, UnreadableNoteError } from '../../src/checkpoint/notes.ts';
import type { Lease, Orphan, RunEnd, RunId, Store, StoredRun } from '../../src/checkpoint/store.ts';
import { AcquireRefusedError, JournalGapError, StaleLeaseError } from '../../src/checkpoint/store.ts';
import { needs } from '../needs.ts';
import type { ReplicaOptions } from '../redis/deployments.ts';
import {
  COMPLETE,
  HEADER_RECORD,
  newRunId,
  OWNER,
  SMALL_RUN,
  STRANGER,
  textOf,
  textRecord,
} from './fixtures.ts';
import { type OpenReplica, storeDeployments } from './store-deployments.ts';

const TTL_MS = 3_600_000;
const LEASE_MS = 1000;
const NOTE_TTL_MS = 60_000;

const FAILED: RunEnd = { status: 'failed', at_ms: 1_700_000_002_000, cause: 'connection_reset' };

const { deployments, missing } = await storeDeployments({ ttl_ms: TTL_MS, lease_ms: LEASE_MS });

for (const [name, reason] of missing) test(`the ${name} store`, needs({ missing: reason }), () => {});

describe.each(Object.keys(deployments))('the %s store', (name) => {
  /** Opens the stores of this many replicas, which share their data. */
  async function openReplicas(count: number): Promise<Store[]> {
    const openReplica = deployments[name]?.() as OpenReplica;
    const stores: Store[] = [];
    for (let i = 0; i < count; i++) {
      const store = await openReplica();
      onTestFinished(() => store.close());
      stores.push(store);
    }
    return stores;
  }

  const open = async (): Promise<Store> => (await openReplicas(1))[0] as Store;
  const openPair = async () => (await openReplicas(2)) as [Store, Store];

  async function begin(store: Store, run: RunId = newRunId()): Promise<Lease> {
    const lease = await store.acquire(run, OWNER);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'a', 'b')]);
    return lease;
  }

  async function read(store: Store, run: RunId): Promise<StoredRun> {
    const stored = await store.read(run, OWNER, 0);
    if (!stored) throw new Error('the run is unknown');
    return stored;
  }

  const takeOver = async (store: Store, run: RunId): Promise<Lease> =>
    store.acquire(run, OWNER, (await read(store, run)).epoch);

  const storedText = async (store: Store, run: RunId): Promise<string> =>
    textOf((await read(store, run)).records);

  const untilLost = (store: Store, run: RunId): Promise<void> =>
    vi.waitFor(async () => expect((await read(store, run)).holder).toEqual({ state: 'lost' }), {
      timeout: 5 * LEASE_MS,
      interval: LEASE_MS / 20,
    });

  describe('appending and reading', () => {
    test('gives back what was appended, while the run lasts and after it', async () => {
      const store = await open();
      const run = newRunId();
      const lease = await store.acquire(run, OWNER);
      expect(lease).toEqual({ run, owner: OWNER, epoch: 1 });
      for (const record of SMALL_RUN) expect(await store.append(lease, [record])).toBe(record.seq);
      expect(await read(store, run)).toEqual({
        status: 'running',
        epoch: 1,
        holder: { state: 'alive', silent_ms: expect.any(Number) },
        takeovers: [],
        seq: 7,
        records: SMALL_RUN,
      });
      await store.finish(lease, COMPLETE);
      expect(await read(store, run)).toEqual({
        status: 'complete',
        end: COMPLETE,
        epoch: 1,
        holder: { state: 'released' },
        takeovers: [],
        seq: 7,
        records: SMALL_RUN,
      });
    });

    test('keeps why a run failed', async () => {
      const store = await open();
      const lease = await begin(store);
      await store.finish(lease, FAILED);
      expect(await read(store, lease.run)).toMatchObject({ status: 'failed', end: FAILED });
    });

    test('reads from a cursor on, beginning with the record it points into', async () => {
      const store = await open();
      const { run } = await begin(store);
      expect((await store.read(run, OWNER, 1))?.records).toEqual([textRecord(0, 'a', 'b')]);
      expect(await store.read(run, OWNER, 2)).toMatchObject({ status: 'running', seq: 2, records: [] });
      expect(await store.read(run, OWNER, 9)).toMatchObject({ status: 'running', seq: 2, records: [] });
    });

    test('knows a run without records', async () => {
      const store = await open();
      const lease = await store.acquire(newRunId(), OWNER);
      expect(await read(store, lease.run)).toMatchObject({ status: 'running', seq: 0, records: [] });
      await store.finish(lease, FAILED);
      expect(await read(store, lease.run)).toMatchObject({ status: 'failed', seq: 0, records: [] });
    });

    test('answers alike for unknown and foreign runs', async () => {
      const store = await open();
      const { run } = await begin(store);
      expect(await store.read(newRunId(), OWNER, 0)).toBeNull();
      expect(await store.read(run, STRANGER, 0)).toBeNull();
    });

    test('skips records it has when a batch is sent again', async () => {
      const store = await open();
      const lease = await begin(store);
      expect(await store.append(lease, [textRecord(0, 'a', 'b'), textRecord(2, 'c')])).toBe(3);
      expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
      expect(await storedText(store, lease.run)).toBe('abc');
    });

    test('refuses a gap and continues from where it was', async () => {
      const store = await open();
      const lease = await begin(store);
      await expect(store.append(lease, [textRecord(3, 'd')])).rejects.toBeInstanceOf(JournalGapError);
      await expect(store.append(lease, [textRecord(1, 'x', 'y')])).rejects.toBeInstanceOf(JournalGapError);
      expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
    });

    test('keeps appends in order that did not wait for one another', async () => {
      const store = await open();
      const lease = await begin(store);
      const letters = [...'cdefghij'];
      const seqs = await Promise.all(
        letters.map((letter, i) => store.append(lease, [textRecord(2 + i, letter)])),
      );
      expect(seqs).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
      await store.finish(lease, COMPLETE);
      expect(await storedText(store, lease.run)).toBe('abcdefghij');
    });

    test('continues behind an append that was refused', async () => {
      const store = await open();
      const lease = await begin(store);
      const appends = [
        [textRecord(2, 'c')],
        [textRecord(9, 'x')],
        [textRecord(2, 'c')],
        [textRecord(3, 'd')],
      ];
      const results = await Promise.allSettled(appends.map((records) => store.append(lease, records)));
      expect(results.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
      ]);
      await store.finish(lease, COMPLETE);
      expect(await storedText(store, lease.run)).toBe('abcd');
    });

    test('keeps the first end of a run that is finished twice', async () => {
      const store = await open();
      const lease = await begin(store);
      await store.finish(lease, COMPLETE);
      await store.finish(lease, FAILED);
      expect(await read(store, lease.run)).toMatchObject({ status: 'complete', end: COMPLETE });
    });

    test('has nothing appended to a finished run, by whomever', async () => {
      const store = await open();
      const lease = await begin(store);
      await store.finish(lease, COMPLETE);
      await expect(store.append(lease, [textRecord(2, 'c')])).rejects.toBeInstanceOf(StaleLeaseError);
      await expect(store.acquire(lease.run, OWNER, 1)).rejects.toMatchObject({ reason: 'finished' });
      await expect(store.acquire(lease.run, OWNER)).rejects.toMatchObject({ reason: 'finished' });
      await expect(store.acquire(lease.run, STRANGER, 1)).rejects.toMatchObject({ reason: 'foreign' });
      await store.release(lease);
      expect(await read(store, lease.run)).toMatchObject({ status: 'complete', epoch: 1 });
    });

    test('forgets a finished run that is purged, for all replicas and for good', async () => {
      const [store, other] = await openPair();
      const [purged, kept] = [await begin(store), await begin(store)];
      for (const lease of [purged, kept]) await store.finish(lease, COMPLETE);
      await read(other, purged.run);
      await store.purge(purged.run, OWNER);
      for (const each of [store, other]) {
        expect(await each.read(purged.run, OWNER, 0)).toBeNull();
        expect(await each.read(purged.run, OWNER, 1)).toBeNull();
        expect(await storedText(each, kept.run)).toBe('ab');
      }
      await expect(store.append(purged, [textRecord(2, 'c')])).rejects.toThrow();
      await expect(other.acquire(purged.run, OWNER, 1)).rejects.toMatchObject({ reason: 'foreign' });
      await other.purge(purged.run, OWNER);
      expect(await other.read(purged.run, OWNER, 0)).toBeNull();
    });

    test('forgets a run of several epochs that is purged', async () => {
      const [store, other] = await openPair();
      const { run } = await begin(store);
      await other.finish(await takeOver(other, run), FAILED);
      await store.purge(run, OWNER);
      expect(await other.read(run, OWNER, 0)).toBeNull();
    });

    test('purges nothing that is running, another owner’s, or unknown', async () => {
      const store = await open();
      const [running, finished] = [await begin(store), await begin(store)];
      await store.finish(finished, COMPLETE);
      await store.purge(running.run, OWNER);
      await store.purge(finished.run, STRANGER);
      await store.purge(newRunId(), OWNER);
      await store.purge('../notes' as RunId, OWNER);
      expect(await storedText(store, finished.run)).toBe('ab');
      expect(await store.append(running, [textRecord(2, 'c')])).toBe(3);
    });

    test('keeps many runs apart', async () => {
      const store = await open();
      const leases = await Promise.all(Array.from({ length: 50 }, () => begin(store)));
      await Promise.all(leases.map((lease) => store.append(lease, [textRecord(2, lease.run)])));
      for (const { run } of leases) expect(await storedText(store, run)).toBe(`ab${run}`);
    });

    test('can be asked whether it works', async () => {
      await expect((await open()).check()).resolves.toBeUndefined();
    });
  });

  describe('the replica that may append', () => {
    test.each([
      'run_../../../etc/passwd.......',
      'run_short',
      'RUN_aaaaaaaaaaaaaaaaaaaaaa',
      `run_${'a'.repeat(99)}`,
    ])('is none for the run id %s', async (id) => {
      const store = await open();
      const refused = store.acquire(id as RunId, OWNER);
      await expect(refused).rejects.toBeInstanceOf(AcquireRefusedError);
      await expect(refused).rejects.toMatchObject({ reason: 'invalid_id' });
      expect(await store.read(id as RunId, OWNER, 0)).toBeNull();
    });

    test('is no stranger, whose attempt leaves the holder undisturbed', async () => {
      const store = await open();
      const lease = await begin(store);
      for (const after of [0, 1, 2]) {
        const refused = store.acquire(lease.run, STRANGER, after);
        await expect(refused).rejects.toMatchObject({ reason: 'foreign' });
      }
      expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
    });

    test('is none that follows an unknown run', async () => {
      const store = await open();
      const run = newRunId();
      await expect(store.acquire(run, OWNER, 1)).rejects.toMatchObject({ reason: 'foreign' });
      expect(await store.acquire(run, OWNER)).toMatchObject({ epoch: 1 });
    });

    test('is none that follows another epoch than the latest', async () => {
      const store = await open();
      const lease = await begin(store);
      for (const after of [0, 2, 7]) {
        const refused = store.acquire(lease.run, OWNER, after);
        await expect(refused).rejects.toMatchObject({ reason: 'taken' });
      }
      expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
      await store.acquire(lease.run, OWNER, 1);
      await expect(store.acquire(lease.run, OWNER, 1)).rejects.toMatchObject({ reason: 'taken' });
      expect(await store.acquire(lease.run, OWNER, 2)).toMatchObject({ epoch: 3 });
    });

    test('is no longer the older lease when a run is taken over', async () => {
      const [first, second] = await openPair();
      const older = await begin(first);
      const newer = await takeOver(second, older.run);
      expect(newer.epoch).toBe(2);
      await expect(first.append(older, [textRecord(2, 'stale')])).rejects.toBeInstanceOf(StaleLeaseError);
      await expect(first.finish(older, FAILED)).rejects.toBeInstanceOf(StaleLeaseError);
      expect(await second.append(newer, [textRecord(2, 'c')])).toBe(3);
      await second.finish(newer, COMPLETE);
      expect(await read(first, older.run)).toMatchObject({ status: 'complete', seq: 3, epoch: 2 });
      expect(await storedText(first, older.run)).toBe('abc');
      await expect(first.finish(older, FAILED)).rejects.toBeInstanceOf(StaleLeaseError);
    });

    test('is the newer lease too when one replica holds both', async () => {
      const store = await open();
      const older = await begin(store);
      const newer = await takeOver(store, older.run);
      await expect(store.append(older, [textRecord(2, 'stale')])).rejects.toBeInstanceOf(StaleLeaseError);
      expect(await store.append(newer, [textRecord(2, 'c')])).toBe(3);
      await store.finish(newer, COMPLETE);
      expect(await storedText(store, older.run)).toBe('abc');
    });

    test('is exactly one of many that follow the same epoch at once', async () => {
      const stores = await openReplicas(3);
      const [first] = stores as [Store];
      for (let round = 0; round < 20; round++) {
        const { run } = await begin(first);
        const claims = Array.from({ length: 9 }, (_, i) => (stores[i % 3] as Store).acquire(run, OWNER, 1));
        const results = await Promise.allSettled(claims);
        const winners = results.flatMap((result, i) =>
          result.status === 'fulfilled' ? [[result.value, stores[i % 3] as Store] as const] : [],
        );
        expect(winners.map(([lease]) => lease)).toEqual([{ run, owner: OWNER, epoch: 2 }]);
        for (const result of results)
          if (result.status === 'rejected') expect(result.reason).toMatchObject({ reason: 'taken' });
        for (const [lease, store] of winners) expect(await store.append(lease, [textRecord(2, 'c')])).toBe(3);
      }
    });

    test('is exactly one of many that begin the same run at once', async () => {
      const stores = await openReplicas(2);
      for (let round = 0; round < 20; round++) {
        const run = newRunId();
        const claims = Array.from({ length: 6 }, (_, i) => (stores[i % 2] as Store).acquire(run, OWNER));
        const results = await Promise.allSettled(claims);
        expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      }
    });
  });

  describe('the holder of a run', () => {
    test('is alive while its store is open, and shows that to other replicas', async () => {
      const [first, second] = await openPair();
      const { run } = await begin(first);
      const { holder } = await read(second, run);
      expect(holder).toEqual({ state: 'alive', silent_ms: expect.any(Number) });
      const { silent_ms } = holder as { silent_ms: number };
      expect(silent_ms).toBeGreaterThanOrEqual(0);
      expect(silent_ms).toBeLessThanOrEqual(LEASE_MS);
      expect(await second.orphans(10)).toEqual([]);
    });

    test('stays alive without appending anything', async () => {
      const [first, second] = await openPair();
      const { run } = await begin(first);
      const until_ms = performance.now() + 2 * LEASE_MS;
      while (performance.now() < until_ms) {
        expect((await read(second, run)).holder.state).toBe('alive');
        await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 10));
      }
    });

    test('is lost soon after its store was closed, and then its runs are orphans', async () => {
      const [first, second] = await openPair();
      const runs = [await begin(first), await begin(first)].map(({ run }) => run);
      await begin(second);
      await first.close();
      for (const run of runs) await untilLost(second, run);
      const orphans = await second.orphans(10);
      expect(new Set(orphans)).toEqual(new Set(runs.map((run) => ({ run, owner: OWNER, epoch: 1 }))));
    });

    test('is the replica that took the run over', async () => {
      const [first, second] = await openPair();
      const { run } = await begin(first);
      await first.close();
      await untilLost(second, run);
      await takeOver(second, run);
      expect(await read(second, run)).toMatchObject({
        epoch: 2,
        holder: { state: 'alive' },
        takeovers: [{ seq: 2 }],
      });
      expect(await second.orphans(10)).toEqual([]);
    });

    test('can hand runs over while others look for orphans and find all of them in the end', async () => {
      const [first, second] = await openPair();
      const leases = await Promise.all(Array.from({ length: 100 }, () => begin(first)));
      let isOver = false;
      const looking = (async () => {
        while (!isOver) await second.orphans(200);
      })();
      // Release them one by one, so that a search can happen between any two releases.
      for (const lease of leases) await first.release(lease);
      isOver = true;
      await looking;
      // A search of a directory that changes meanwhile may miss some runs; the next search finds them.
      const missing = async () => {
        const found = new Set((await second.orphans(200)).map(({ run }) => run));
        return leases.filter(({ run }) => !found.has(run));
      };
      await expect.poll(missing, { timeout: 10_000 }).toEqual([]);
    });

    test('can hand the run over, and may not append from then on', async () => {
      const [first, second] = await openPair();
      const lease = await begin(first);
      await first.release(lease);
      const released = await read(second, lease.run);
      expect(released).toMatchObject({ status: 'running', holder: { state: 'released' }, seq: 2 });
      expect(released).not.toHaveProperty('end');
      await expect(first.append(lease, [textRecord(2, 'x')])).rejects.toBeInstanceOf(StaleLeaseError);
      await expect(first.finish(lease, FAILED)).rejects.toBeInstanceOf(StaleLeaseError);
      expect(await second.orphans(10)).toEqual([{ run: lease.run, owner: OWNER, epoch: released.epoch }]);
      const next = await second.acquire(lease.run, OWNER, released.epoch);
      expect(await second.append(next, [textRecord(2, 'c')])).toBe(3);
      expect((await read(first, lease.run)).holder.state).toBe('alive');
      await second.finish(next, COMPLETE);
      expect(await read(first, lease.run)).toMatchObject({ status: 'complete', takeovers: [{ seq: 2 }] });
      expect(await storedText(first, lease.run)).toBe('abc');
    });

    test('has everything stored that it appended before it handed the run over', async () => {
      const [first, second] = await openPair();
      const lease = await begin(first);
      const letters = [...'cdefgh'];
      const appends = letters.map((letter, i) => first.append(lease, [textRecord(2 + i, letter)]));
      await Promise.all([...appends, first.release(lease)]);
      expect(await storedText(second, lease.run)).toBe('abcdefgh');
    });

    test('may hand it over twice, but not for a successor', async () => {
      const [first, second] = await openPair();
      const lease = await begin(first);
      await first.release(lease);
      await first.release(lease);
      const next = await takeOver(second, lease.run);
      await first.release(lease);
      expect((await read(first, lease.run)).holder.state).toBe('alive');
      expect(await second.append(next, [textRecord(2, 'c')])).toBe(3);
    });

    test('can hand over a run that says nothing yet', async () => {
      const [first, second] = await openPair();
      const lease = await first.acquire(newRunId(), OWNER);
      await first.release(lease);
      const next = await takeOver(second, lease.run);
      expect(await second.append(next, [HEADER_RECORD, textRecord(0, 'a')])).toBe(1);
      expect(await storedText(first, lease.run)).toBe('a');
    });
  });

  test('says where every successor began', async () => {
    const store = await open();
    const { run } = await begin(store);
    await takeOver(store, run);
    const third = await takeOver(store, run);
    await store.append(third, [textRecord(2, 'c')]);
    const fourth = await takeOver(store, run);
    expect((await read(store, run)).takeovers.map(({ seq }) => seq)).toEqual([2, 2, 3]);
    await store.finish(fourth, COMPLETE);
    expect(await read(store, run)).toMatchObject({
      epoch: 4,
      takeovers: [{ seq: 2 }, { seq: 2 }, { seq: 3 }],
    });
  });

  test('gives no more orphans than were asked for, and all of them in the end', async () => {
    const [first, second] = await openPair();
    const leases = await Promise.all(Array.from({ length: 7 }, () => begin(first)));
    await first.finish(leases[0] as Lease, COMPLETE);
    for (const lease of leases.slice(1)) await first.release(lease);
    const found = new Map<RunId, Orphan>();
    for (let call = 0; call < 20 && found.size < 6; call++) {
      const orphans = await second.orphans(4);
      expect(orphans.length).toBeLessThanOrEqual(4);
      for (const orphan of orphans) {
        found.set(orphan.run, orphan);
        const lease = await second.acquire(orphan.run, orphan.owner, orphan.epoch);
        await second.finish(lease, { status: 'recovered_from_partial', at_ms: 1 });
      }
    }
    expect(new Set(found.keys())).toEqual(new Set(leases.slice(1).map(({ run }) => run)));
    expect(await second.orphans(4)).toEqual([]);
  });

  describe('a note', () => {
    const KEY: NoteKey = { kind: 'idempotency', name: 'a key' };

    test('is found by every replica', async () => {
      const [first, second] = await openPair();
      expect(await first.notes.get(OWNER, KEY)).toBeUndefined();
      await first.notes.put(OWNER, KEY, 'one', NOTE_TTL_MS);
      expect(await second.notes.get(OWNER, KEY)).toBe('one');
      await second.notes.put(OWNER, KEY, 'two', NOTE_TTL_MS);
      expect(await first.notes.get(OWNER, KEY)).toBe('two');
    });

    test('is no other owner’s, and no other note', async () => {
      const store = await open();
      await store.notes.put(OWNER, KEY, 'mine', NOTE_TTL_MS);
      expect(await store.notes.get(STRANGER, KEY)).toBeUndefined();
      expect(await store.notes.consume(STRANGER, KEY)).toBeUndefined();
      expect(await store.notes.get(OWNER, { ...KEY, kind: 'thread' })).toBeUndefined();
      expect(await store.notes.get(OWNER, { ...KEY, name: 'a key ' })).toBeUndefined();
      expect(await store.notes.claim(STRANGER, KEY, 'theirs', NOTE_TTL_MS)).toBe('theirs');
      expect(await store.notes.get(OWNER, KEY)).toBe('mine');
    });

    test.each(['../../../etc/passwd', '{a}:*\0\n', 'x'.repeat(100_000), '', '🙂 Grüße'])(
      'may have any name (%#)',
      async (name_of_note) => {
        const store = await open();
        const key: NoteKey = { kind: 'thread', name: name_of_note };
        await store.notes.put(OWNER, key, 'value', NOTE_TTL_MS);
        expect(await store.notes.consume(OWNER, key)).toBe('value');
      },
    );

    test('keeps any text', async () => {
      const store = await open();
      for (const value of ['', ' \n\r\u2028\0', '{"tail":"🙂"}', 'x'.repeat(NOTE_CHARACTERS_MAX)]) {
        await store.notes.put(OWNER, KEY, value, NOTE_TTL_MS);
        expect(await store.notes.get(OWNER, KEY)).toBe(value);
      }
    });

    test('that is too long is refused', async () => {
      const store = await open();
      const value = 'x'.repeat(NOTE_CHARACTERS_MAX + 1);
      await expect(store.notes.put(OWNER, KEY, value, NOTE_TTL_MS)).rejects.toThrow(RangeError);
      await expect(store.notes.claim(OWNER, KEY, value, NOTE_TTL_MS)).rejects.toThrow(RangeError);
    });

    test('goes when its time is over, and can be claimed again', async () => {
      const store = await open();
      const other: NoteKey = { ...KEY, name: 'another' };
      await store.notes.put(OWNER, other, 'old', 60);
      expect(await store.notes.claim(OWNER, KEY, 'old', 60)).toBe('old');
      const gone = async () => expect(await store.notes.get(OWNER, KEY)).toBeUndefined();
      await vi.waitFor(gone, { timeout: 5000, interval: 10 });
      expect(await store.notes.consume(OWNER, other)).toBeUndefined();
      expect(await store.notes.claim(OWNER, KEY, 'new', NOTE_TTL_MS)).toBe('new');
      expect(await store.notes.claim(OWNER, KEY, 'newer', NOTE_TTL_MS)).toBe('new');
    });

    test('that is extended lasts for longer, and one that is not there stays so', async () => {
      const [store, peer] = await openPair();
      const other: NoteKey = { ...KEY, name: 'another' };
      const missing: NoteKey = { ...KEY, name: 'a third' };
      expect(await store.notes.get(OWNER, KEY)).toBeUndefined();
      // All in one batch and in this order, so that even a slow machine extends the note before it expires.
      await Promise.all([
        store.notes.put(OWNER, KEY, 'kept', 700),
        store.notes.put(OWNER, other, 'gone', 700),
        store.notes.extend(OWNER, KEY, NOTE_TTL_MS),
        store.notes.extend(OWNER, other, 1),
        store.notes.extend(STRANGER, other, NOTE_TTL_MS),
        store.notes.extend(OWNER, missing, NOTE_TTL_MS),
      ]);
      const gone = async () => expect(await store.notes.get(OWNER, other)).toBeUndefined();
      await vi.waitFor(gone, { timeout: 5000, interval: 10 });
      await store.notes.extend(OWNER, other, NOTE_TTL_MS);
      // An extension must never shorten a note's lifetime.
      await peer.notes.extend(OWNER, KEY, 1);
      for (const { notes } of [store, peer]) {
        expect(await notes.get(OWNER, KEY)).toBe('kept');
        expect(await notes.get(OWNER, other)).toBeUndefined();
        expect(await notes.get(OWNER, missing)).toBeUndefined();
      }
    });

    test('is found by its own read among many at once', async () => {
      const [store, peer] = (await openReplicas(2)) as [Store, Store];
      const keys = Array.from({ length: 250 }, (_, i): NoteKey => ({ kind: 'step', name: `at once ${i}` }));
      const isThere = (i: number) => i % 3 !== 0;
      await Promise.all(
        keys.map((key, i) => isThere(i) && store.notes.put(OWNER, key, `note ${i}`, NOTE_TTL_MS)),
      );
      const read = await Promise.all(keys.map((key) => peer.notes.get(OWNER, key)));
      expect(read).toEqual(keys.map((_, i) => (isThere(i) ? `note ${i}` : undefined)));
    });

    test('that many claim at once is the same for all of them', async () => {
      const stores = await openReplicas(3);
      for (let round = 0; round < 20; round++) {
        const key: NoteKey = { kind: 'idempotency', name: `round ${round}` };
        const kept = await Promise.all(
          Array.from({ length: 9 }, (_, i) =>
            (stores[i % 3] as Store).notes.claim(OWNER, key, `claim ${i}`, NOTE_TTL_MS),
          ),
        );
        expect(new Set(kept).size).toBe(1);
        expect(await (stores[0] as Store).notes.get(OWNER, key)).toBe(kept[0]);
      }
    });

    test('that many take at once is given to one of them', async () => {
      const stores = await openReplicas(3);
      for (let round = 0; round < 20; round++) {
        const key: NoteKey = { kind: 'thread', name: `round ${round}` };
        await (stores[0] as Store).notes.put(OWNER, key, 'told once', NOTE_TTL_MS);
        const taken = await Promise.all(
          Array.from({ length: 9 }, (_, i) => (stores[i % 3] as Store).notes.consume(OWNER, key)),
        );
        expect(taken.filter((value) => value !== undefined)).toEqual(['told once']);
        expect(await (stores[1] as Store).notes.get(OWNER, key)).toBeUndefined();
      }
    });
  });
});

const sealed = Object.keys(deployments).filter((name) => name.startsWith('sealed'));

describe.each(sealed)('a note in the %s store whose key is gone', (name) => {
  const KEY: NoteKey = { kind: 'idempotency', name: 'a private name' };
  const LATER_KEY = 'l'.repeat(32);

  /** A replica with the old key, two with the later one, and the errors that those two have reported. */
  async function rotate() {
    const openReplica = deployments[name]?.() as OpenReplica;
    const told: [Error[], Error[]] = [[], []];
    const open = async (own?: ReplicaOptions) => {
      const store = await openReplica(own);
      onTestFinished(() => store.close());
      return store.notes;
    };
    const before = await open();
    const [first, second] = told;
    const after = [
      await open({ sealing_key: LATER_KEY, onError: (error) => first.push(error) }),
      await open({ sealing_key: LATER_KEY, onError: (error) => second.push(error) }),
    ] as const;
    return { before, after, told };
  }

  test('counts as none, which every replica reports once', async () => {
    const { before, after, told } = await rotate();
    await before.put(OWNER, KEY, 'old', NOTE_TTL_MS);
    for (let time = 0; time < 3; time++)
      for (const notes of after) expect(await notes.get(OWNER, KEY)).toBeUndefined();
    for (const errors of told) {
      expect(errors).toEqual([expect.any(UnreadableNoteError)]);
      expect(errors[0]?.message).not.toContain(KEY.name);
    }
    const other: NoteKey = { ...KEY, name: 'another' };
    await before.put(OWNER, other, 'old', NOTE_TTL_MS);
    expect(await after[0].get(OWNER, other)).toBeUndefined();
    expect(told[0]).toHaveLength(2);
  });

  test('is replaced by one that is put, and removed by the caller that takes it', async () => {
    const { before, after } = await rotate();
    await before.put(OWNER, KEY, 'old', NOTE_TTL_MS);
    await after[0].put(OWNER, KEY, 'new', NOTE_TTL_MS);
    expect(await after[1].get(OWNER, KEY)).toBe('new');
    await before.put(OWNER, KEY, 'old', NOTE_TTL_MS);
    expect(await after[0].consume(OWNER, KEY)).toBeUndefined();
    expect(await before.get(OWNER, KEY)).toBeUndefined();
  });

  test('gives way to one that is claimed, the same for all that claim it at once', async () => {
    const { before, after, told } = await rotate();
    for (let round = 0; round < 20; round++) {
      const key: NoteKey = { kind: 'idempotency', name: `round ${round}` };
      await before.claim(OWNER, key, 'old', NOTE_TTL_MS);
      const kept = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          (i % 2 === 0 ? after[0] : after[1]).claim(OWNER, key, `claim ${i}`, NOTE_TTL_MS),
        ),
      );
      expect(new Set(kept).size).toBe(1);
      expect(kept[0]).toMatch(/^claim \d$/);
      for (const notes of after) {
        expect(await notes.get(OWNER, key)).toBe(kept[0]);
        expect(await notes.claim(OWNER, key, 'later', NOTE_TTL_MS)).toBe(kept[0]);
      }
    }
    for (const errors of told) expect(errors.length).toBeLessThanOrEqual(20);
    expect(told.flat().length).toBeGreaterThanOrEqual(20);
  });
});
