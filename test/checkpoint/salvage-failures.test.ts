import { describe, expect, test, vi } from 'vitest';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import type { Orphan, RunId } from '../../src/checkpoint/store.ts';
import { OWNER } from './fixtures.ts';
import { AFTER_MS, type Deployment, deployment, TTL_MS } from './salvage-deployment.ts';

/** A store whose calls fail if their names are in `failing`. */
class FailingStore extends MemoryStore {
  readonly failing = new Set<string>();

  override async orphans(limit: number): Promise<readonly Orphan[]> {
    if (this.failing.has('orphans')) throw new Error('no route to store');
    return super.orphans(limit);
  }

  override async read(...asked: Parameters<MemoryStore['read']>) {
    if (this.failing.has('read')) throw new Error('no route to store');
    return super.read(...asked);
  }

  override async finish(...asked: Parameters<MemoryStore['finish']>) {
    if (this.failing.has('finish')) throw new Error('no route to store');
    return super.finish(...asked);
  }
}

interface Failing {
  readonly replicas: Deployment;
  readonly store: FailingStore;
  /** Another replica that shares the runs. */
  readonly successor: MemoryStore;
  lose(): Promise<RunId>;
}

describe('a store that fails', () => {
  function failing(): Failing {
    const replicas = deployment();
    const runs = new MemoryRuns();
    const store = new FailingStore({ time: replicas.time, ttl_ms: TTL_MS, runs });
    const lose = async () => {
      const lost = new MemoryStore({ time: replicas.time, ttl_ms: TTL_MS, runs });
      const { run } = await replicas.begin(lost);
      await lost.close();
      return run;
    };
    const successor = new MemoryStore({ time: replicas.time, ttl_ms: TTL_MS, runs });
    return { replicas, store, lose, successor };
  }

  test('is reported once a minute, and nothing else happens', async () => {
    const { replicas, store } = failing();
    store.failing.add('orphans');
    replicas.sweep(store);
    await replicas.pass(119_000);
    expect(replicas.errors).toEqual([
      { error: new Error('no route to store'), unreported: 0 },
      { error: new Error('no route to store'), unreported: 3 },
    ]);
  });

  test.each(['read', 'finish'])('at %s has the run finalised once it works again', async (call) => {
    const { replicas, store, lose } = failing();
    const run = await lose();
    store.failing.add(call);
    replicas.sweep(store);
    await replicas.pass(AFTER_MS * 3);
    expect(replicas.salvaged).toEqual([]);
    store.failing.delete(call);
    await replicas.pass(AFTER_MS);
    expect(replicas.salvaged.map((salvaged) => salvaged.run)).toEqual([run]);
    expect((await store.read(run, OWNER, 0))?.status).toBe('recovered_from_partial');
  });

  test('is left alone until the next sweep when it fails again and again', async () => {
    const { replicas, store, lose } = failing();
    for (let count = 0; count < 10; count++) await lose();
    const counted = vi.spyOn(store, 'acquire');
    store.failing.add('read');
    replicas.sweep(store);
    await replicas.pass(AFTER_MS + 1);
    expect(counted).toHaveBeenCalledTimes(3);
  });

  test('at some runs for good does not keep the others waiting', async () => {
    const { replicas, store, lose } = failing();
    const runs: RunId[] = [];
    for (let count = 0; count < 8; count++) runs.push(await lose());
    const poisoned = new Set(runs.slice(0, 4));
    const { acquire } = store;
    store.acquire = (run, ...asked) =>
      poisoned.has(run) ? Promise.reject(new Error('unreadable')) : acquire.call(store, run, ...asked);
    replicas.sweep(store);
    await replicas.pass(AFTER_MS * 2);
    expect(new Set(replicas.salvaged.map(({ run }) => run))).toEqual(new Set(runs.slice(4)));
  });

  test('has nothing kept of a run that another replica took over meanwhile', async () => {
    const { replicas, store, lose, successor } = failing();
    const run = await lose();
    store.failing.add('finish');
    replicas.sweep(store);
    await replicas.pass(AFTER_MS + 1);
    expect(replicas.kept).toHaveLength(1);
    await successor.acquire(run, OWNER, 2);
    store.failing.delete('finish');
    await replicas.pass(AFTER_MS);
    expect(replicas.kept).toHaveLength(1);
    expect(replicas.salvaged).toEqual([]);
  });

  test('keeps no orphan from replicas that sweep after this one', async () => {
    const { replicas, store, lose } = failing();
    const run = await lose();
    store.failing.add('finish');
    const salvage = replicas.sweep(store);
    await replicas.pass(AFTER_MS * 2);
    expect(await store.orphans(10)).toEqual([]);
    await replicas.time.drive(salvage.close());
    expect(await store.orphans(10)).toMatchObject([{ run }]);
  });
});
