import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { RunHeader } from '../../src/checkpoint/journal.ts';
import { RUNS_INDEXED_MAX } from '../../src/checkpoint/run-index.ts';
import type { Lease, Owner, RunId, Store } from '../../src/checkpoint/store.ts';
import { needs } from '../needs.ts';
import { COMPLETE, HEADER, newRunId, OWNER, STRANGER, textRecord } from './fixtures.ts';
import { type OpenReplica, storeDeployments } from './store-deployments.ts';

const TTL_MS = 3_600_000;
const LEASE_MS = 1000;
const BEGAN_MS = HEADER.created_at_ms;

const { deployments, missing } = await storeDeployments({ ttl_ms: TTL_MS, lease_ms: LEASE_MS });

for (const [name, reason] of missing) test(`the ${name} store`, needs({ missing: reason }), () => {});

/** Begins a run `after_ms` later than the earliest possible one. */
async function begin(
  store: Store,
  after_ms = 0,
  own: Partial<RunHeader> = {},
  owner: Owner = OWNER,
): Promise<Lease> {
  const lease = await store.acquire(newRunId(), owner);
  await store.append(lease, [
    { seq: 0, header: { ...HEADER, created_at_ms: BEGAN_MS + after_ms, ...own }, events: [] },
  ]);
  return lease;
}

const listed = async (store: Store, thread?: string, owner: Owner = OWNER): Promise<readonly RunId[]> =>
  (await store.index.list(owner, thread)).map(({ run }) => run);

/** The index may be stored apart from the run and lag behind it. */
const eventually = (expected: readonly RunId[], ...asked: Parameters<typeof listed>): Promise<void> =>
  vi.waitFor(async () => expect(await listed(...asked)).toEqual(expected), { timeout: 5000, interval: 20 });

describe.each(Object.keys(deployments))('the index of the %s store', (name) => {
  async function openReplicas(count: number): Promise<[Store, ...Store[]]> {
    const openReplica = deployments[name]?.() as OpenReplica;
    const stores: Store[] = [];
    for (let i = 0; i < count; i++) {
      const store = await openReplica();
      onTestFinished(() => store.close());
      stores.push(store);
    }
    return stores as [Store, ...Store[]];
  }

  test('lists the runs of an owner, the newest first, for every replica, whichever ended them', async () => {
    const [store, other = store] = await openReplicas(2);
    expect(await listed(store)).toEqual([]);
    const second = await begin(store, 2);
    const first = await begin(store, 1);
    const third = await begin(other, 3);
    await begin(store, 4, {}, STRANGER);
    const expected = [third.run, second.run, first.run];
    await eventually(expected, store);
    await eventually(expected, other);
    await store.finish(first, COMPLETE);
    await store.release(second);
    const taken = await other.acquire(second.run, OWNER, 2);
    await other.append(taken, [textRecord(0, 'a')]);
    await eventually(expected, store);
    expect(await store.index.list(OWNER)).toMatchObject([
      { run: third.run, created_at_ms: BEGAN_MS + 3 },
      { run: second.run, created_at_ms: BEGAN_MS + 2 },
      { run: first.run, created_at_ms: BEGAN_MS + 1 },
    ]);
  });

  test('distinguishes threads', async () => {
    const [store, other = store] = await openReplicas(2);
    const thread = 'conversation 🌊 / "1"';
    const one = await begin(store, 1, { thread });
    const another = await begin(store, 2, { thread: 'conversation' });
    const again = await begin(other, 3, { thread });
    const none = await begin(store, 4);
    await begin(store, 5, { thread }, STRANGER);
    await eventually([again.run, one.run], store, thread);
    await eventually([another.run], other, 'conversation');
    await eventually([none.run, again.run, another.run, one.run], other);
    expect(await listed(store, 'conversation 🌊')).toEqual([]);
  });

  test('lists a run once, however often its header is sent, and none without a header', async () => {
    const [store] = await openReplicas(1);
    const lease = await store.acquire(newRunId(), OWNER);
    expect(await listed(store)).toEqual([]);
    const record = { seq: 0, header: HEADER, events: [] };
    await store.append(lease, [record]);
    await store.append(lease, [record]);
    await store.append(lease, [record, textRecord(0, 'a')]);
    await store.append(lease, [textRecord(1, 'b')]);
    await eventually([lease.run], store);
  });

  test('forgets a run that its owner purges, and keeps it when a stranger tries', async () => {
    const [store, other = store] = await openReplicas(2);
    const kept = await begin(store, 1, { thread: 't' });
    const purged = await begin(store, 2, { thread: 't' });
    const running = await begin(store, 3);
    const all = [running.run, purged.run, kept.run];
    await eventually(all, other);
    await store.finish(kept, COMPLETE);
    await store.finish(purged, COMPLETE);
    await other.purge(kept.run, STRANGER);
    await other.purge(running.run, OWNER);
    expect(await listed(store)).toEqual(all);
    await other.purge(purged.run, OWNER);
    await eventually([running.run, kept.run], store);
    expect(await listed(other, 't')).toEqual([kept.run]);
  });

  test('removes the entries it is given, of their owner alone', async () => {
    const [store] = await openReplicas(1);
    const lease = await begin(store);
    await eventually([lease.run], store);
    const entries = await store.index.list(OWNER);
    await store.index.forget(STRANGER, entries);
    await store.index.forget(OWNER, []);
    expect(await listed(store)).toEqual([lease.run]);
    await store.index.forget(OWNER, entries);
    expect(await listed(store)).toEqual([]);
  });

  test('lists the newest of many runs, and no more than it may', async () => {
    const [store] = await openReplicas(1);
    const runs: RunId[] = [];
    for (let after_ms = 0; after_ms < RUNS_INDEXED_MAX + 70; after_ms += 10) {
      const batch = Array.from({ length: 10 }, (_, i) => begin(store, after_ms + i));
      runs.push(...(await Promise.all(batch)).map(({ run }) => run));
    }
    await eventually(runs.toReversed().slice(0, RUNS_INDEXED_MAX), store);
  });
});

describe.each(Object.keys(deployments).filter((name) => name.startsWith('sealed')))(
  'the index of the %s store, under a new key',
  (name) => {
    test('finds the threads of the runs of its own key, and lists all of them', async () => {
      const openReplica = deployments[name]?.() as OpenReplica;
      const [before, after] = [await openReplica(), await openReplica({ sealing_key: 'l'.repeat(32) })];
      onTestFinished(async () => {
        await Promise.all([before.close(), after.close()]);
      });
      const old = await begin(before, 1, { thread: 't' });
      const later = await begin(after, 2, { thread: 't' });
      await eventually([later.run], after, 't');
      await eventually([later.run, old.run], after);
      await eventually([old.run], before, 't');
    });
  },
);
