import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import type { Continuation } from '../../src/checkpoint/salvage.ts';
import type { SalvagedRun } from '../../src/checkpoint/salvaged-run.ts';
import { AcquireRefusedError, type Orphan } from '../../src/checkpoint/store.ts';
import { sleep } from '../../src/lib/time.ts';
import { caseShare } from '../cases.ts';
import type { VirtualTime } from '../simulation/virtual-time.ts';
import { HEADER_RECORD, OWNER, SMALL_RUN, textRecord } from './fixtures.ts';
import { AFTER_MS, Deployment, deployment, NEVER } from './salvage-deployment.ts';

describe('an orphan', () => {
  test('waits for its client, and is finalised when that does not come', async () => {
    const replicas = deployment();
    const run = await replicas.lose();
    replicas.sweep();
    await replicas.pass(AFTER_MS - 1);
    expect(await replicas.statusOf(run)).toBe('running');
    await replicas.pass(AFTER_MS / 2);
    const stored = await replicas.replica().read(run, OWNER, 0);
    expect(stored?.status).toBe('recovered_from_partial');
    expect(stored?.end).toEqual({
      status: 'recovered_from_partial',
      at_ms: expect.any(Number),
      cause: 'replica_lost',
    });
    expect(stored?.records).toEqual([HEADER_RECORD, textRecord(0, 'Kelp', ' grips')]);
    expect(replicas.salvaged.map((salvaged) => salvaged.run)).toEqual([run]);
    expect(replicas.kept).toEqual(replicas.salvaged);
  });

  test('that was handed over is finalised too', async () => {
    const replicas = deployment();
    const store = replicas.replica();
    const lease = await replicas.begin(store);
    await store.release(lease);
    replicas.sweep();
    await replicas.pass(AFTER_MS * 1.5);
    expect(await replicas.statusOf(lease.run)).toBe('recovered_from_partial');
  });

  test('whose client came back is left alone', async () => {
    const replicas = deployment();
    const run = await replicas.lose();
    replicas.sweep();
    await replicas.pass(AFTER_MS / 2);
    const successor = replicas.replica();
    const lease = await successor.acquire(run, OWNER, 1);
    await replicas.pass(AFTER_MS * 2);
    expect(await replicas.statusOf(run)).toBe('running');
    expect(await successor.append(lease, [textRecord(2, ' on')])).toBe(3);
  });

  test.each([
    ['complete', [...SMALL_RUN]],
    ['failed', []],
    ['failed', [HEADER_RECORD]],
  ])('is finalised as %s if that is what it is', async (status, records) => {
    const replicas = deployment();
    const run = await replicas.lose(records);
    replicas.sweep();
    await replicas.pass(AFTER_MS * 1.5);
    expect(await replicas.statusOf(run)).toBe(status);
  });
});

test('a run that is delivered is never touched', async () => {
  const replicas = deployment();
  const store = replicas.replica();
  const { run } = await replicas.begin(store);
  replicas.sweep();
  replicas.sweep(store);
  await replicas.pass(AFTER_MS * 3);
  expect(await replicas.statusOf(run)).toBe('running');
});

test('replicas that sweep one store at the same time finalise each orphan once', async () => {
  const seed = fc.integer();
  await fc.assert(
    fc.asyncProperty(seed, async (picked) => {
      const replicas = new Deployment();
      const runs = await Promise.all(Array.from({ length: 20 }, () => replicas.lose()));
      const answers: string[] = [];
      for (let replica = 0; replica < 4; replica++)
        replicas.sweep(farAway(replicas.replica(), replicas.time, picked + replica, answers));
      await replicas.pass(AFTER_MS * 2);
      expect(replicas.salvaged).toHaveLength(runs.length);
      expect(new Set(replicas.salvaged.map(({ run }) => run))).toEqual(new Set(runs));
      expect(replicas.kept).toHaveLength(runs.length);
      expect(replicas.errors).toEqual([]);
      expect(answers).toContain('taken');
      await replicas.close();
    }),
    { numRuns: caseShare(250) },
  );
});

/** The same store across a network: calls that replicas make at the same time arrive in any order. */
function farAway(store: MemoryStore, time: VirtualTime, seed: number, refusals: string[]): MemoryStore {
  let state = seed >>> 0;
  const under_way = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return sleep(time, state % 10, NEVER);
  };
  for (const call of ['orphans', 'acquire', 'read', 'finish'] as const) {
    const there = store[call].bind(store) as (...values: unknown[]) => Promise<unknown>;
    const asked = async (...values: unknown[]) => {
      await under_way();
      try {
        return await there(...values);
      } catch (error) {
        if (error instanceof AcquireRefusedError) refusals.push(error.reason);
        throw error;
      } finally {
        await under_way();
      }
    };
    Object.assign(store, { [call]: asked });
  }
  return store;
}

test('more orphans than one sweep takes are finalised by the next ones', async () => {
  const replicas = deployment();
  for (let count = 0; count < 250; count++) await replicas.lose();
  replicas.sweep();
  await replicas.pass(AFTER_MS + 1);
  expect(replicas.salvaged).toHaveLength(100);
  await replicas.pass(AFTER_MS);
  expect(replicas.salvaged).toHaveLength(250);
});

test('a run whose note cannot be left is not sealed, and does not keep the others waiting', async () => {
  const replicas = deployment();
  const stuck = await replicas.lose();
  const runs = [await replicas.lose(), await replicas.lose()];
  const keep = async ({ run }: SalvagedRun) => {
    if (run === stuck) throw new Error('no room for notes');
  };
  replicas.sweep(replicas.replica(), { keep });
  await replicas.pass(AFTER_MS * 2);
  expect(new Set(replicas.salvaged.map(({ run }) => run))).toEqual(new Set(runs));
  expect(await replicas.statusOf(stuck)).toBe('running');
});

test('one that lost its lease in between leaves the run to its successor', async () => {
  const replicas = deployment();
  const run = await replicas.lose();
  const successor = replicas.replica();
  const keep = async () => void (await successor.acquire(run, OWNER, 2));
  replicas.sweep(replicas.replica(), { keep });
  await replicas.pass(AFTER_MS * 3);
  expect(replicas.salvaged).toEqual([]);
  expect(replicas.errors).toEqual([]);
  expect(await replicas.statusOf(run)).toBe('running');
});

test('nothing is begun after it was closed', async () => {
  const replicas = deployment();
  const runs = [await replicas.lose(), await replicas.lose()];
  const entered = Promise.withResolvers<void>();
  const hold = Promise.withResolvers<void>();
  const keep = () => {
    entered.resolve();
    return hold.promise;
  };
  const salvage = replicas.sweep(replicas.replica(), { keep });
  await replicas.time.drive(entered.promise);
  const closed = salvage.close();
  hold.resolve();
  await replicas.time.drive(closed);
  await replicas.pass(AFTER_MS);
  expect(replicas.salvaged).toHaveLength(1);
  expect(runs).toContain(replicas.salvaged[0]?.run);
});

test('a store that does not answer is not waited for when it is closed', async () => {
  const replicas = deployment();
  await replicas.lose();
  const entered = Promise.withResolvers<void>();
  const keep = () => {
    entered.resolve();
    return new Promise<void>(() => {});
  };
  const salvage = replicas.sweep(replicas.replica(), { keep });
  await replicas.time.drive(entered.promise);
  const before_ms = replicas.time.now();
  await replicas.time.drive(salvage.close());
  expect(replicas.time.now() - before_ms).toBe(2000);
});

describe('an orphan that may continue without its client', () => {
  const UNATTENDED_MS = AFTER_MS / 10;
  const UNTIL_MS = AFTER_MS * 2;

  /** Starts a sweep in which every attempt to begin has this result; returns the runs that it attempts. */
  function beginning(replicas: Deployment, continuation: () => Continuation) {
    const begun: string[] = [];
    const begin = async ({ run }: Orphan) => {
      begun.push(run);
      return continuation();
    };
    const unattended = { after_ms: UNATTENDED_MS, until_ms: UNTIL_MS, begin };
    replicas.sweep(replicas.replica(), { unattended });
    return begun;
  }

  test('belongs to its client at first, and is begun then', async () => {
    const replicas = deployment();
    const run = await replicas.lose();
    const begun = beginning(replicas, () => 'begun');
    await replicas.pass(UNATTENDED_MS - 1);
    expect(begun).toEqual([]);
    await replicas.pass(UNATTENDED_MS / 2);
    expect(begun).toEqual([run]);
    expect(replicas.salvaged).toEqual([]);
  });

  test('is asked about once, and finalised in its time, if it never can', async () => {
    const replicas = deployment();
    const run = await replicas.lose();
    const begun = beginning(replicas, () => 'never');
    await replicas.pass(AFTER_MS - 1);
    expect(begun).toEqual([run]);
    expect(await replicas.statusOf(run)).toBe('running');
    await replicas.pass(UNATTENDED_MS);
    expect(begun).toEqual([run]);
    expect(await replicas.statusOf(run)).toBe('recovered_from_partial');
  });

  test('waits for room, longer than others wait for their clients, but not for ever', async () => {
    const replicas = deployment();
    const run = await replicas.lose();
    const begun = beginning(replicas, () => 'later');
    await replicas.pass(UNTIL_MS - 1);
    expect(begun.length).toBeGreaterThan(10);
    expect(await replicas.statusOf(run)).toBe('running');
    await replicas.pass(UNATTENDED_MS);
    expect(await replicas.statusOf(run)).toBe('recovered_from_partial');
  });

  test('is begun when there is room', async () => {
    const replicas = deployment();
    const run = await replicas.lose();
    let hasRoom = false;
    const begun = beginning(replicas, () => (hasRoom ? 'begun' : 'later'));
    await replicas.pass(AFTER_MS);
    hasRoom = true;
    const before = begun.length;
    await replicas.pass(UNATTENDED_MS / 2);
    expect(begun.length).toBe(before + 1);
    expect(await replicas.statusOf(run)).toBe('running');
  });

  test('is tried again after a failure of the store, which is reported', async () => {
    const replicas = deployment();
    const run = await replicas.lose();
    let failures = 1;
    const begun = beginning(replicas, () => {
      if (failures-- > 0) throw new Error('the store is away');
      return 'begun';
    });
    await replicas.pass(UNATTENDED_MS * 2);
    expect(begun.slice(0, 2)).toEqual([run, run]);
    expect(replicas.errors).toHaveLength(1);
    expect(replicas.salvaged).toEqual([]);
  });
});
