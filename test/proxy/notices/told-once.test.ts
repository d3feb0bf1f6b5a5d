import pino from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CheckpointScheduler } from '../../../src/checkpoint/checkpoint-scheduler.ts';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { MemoryRuns } from '../../../src/checkpoint/memory/memory-runs.ts';
import { MemoryStore } from '../../../src/checkpoint/memory/memory-store.ts';
import type { Salvage } from '../../../src/checkpoint/salvage.ts';
import type { RunId, Store } from '../../../src/checkpoint/store.ts';
import { CapabilityMemory } from '../../../src/proxy/dialects/capability-memory.ts';
import { NoticeBoard } from '../../../src/proxy/notices/notice-board.ts';
import type { Fate } from '../../../src/proxy/notices/notice-form.ts';
import type { RunContext } from '../../../src/proxy/run.ts';
import { createRunSalvage } from '../../../src/proxy/run-salvage.ts';
import { systemTime, type Time } from '../../../src/time.ts';
import { HEADER, newRunId, OWNER, temporaryDirectory, textRecord } from '../../checkpoint/fixtures.ts';
import { redisDeployments } from '../../redis/deployments.ts';
import { DEFAULTS, METRICS } from '../../simulation/simulate.ts';

const TTL_MS = 3_600_000;
const LEASE_MS = 600;
const SALVAGE_AFTER_MS = 100;
const SALVAGED = { timeout: 15_000, interval: 20 };
const THREAD = 'thread';

/** Nobody loses patience with a store on a busy machine. */
const PATIENCE: Time = { ...systemTime, after: () => () => {} };

type OpenReplica = () => Store | Promise<Store>;

const deployments: Record<string, () => OpenReplica> = {
  memory: () => {
    const runs = new MemoryRuns();
    return () => new MemoryStore({ time: systemTime, ttl_ms: TTL_MS, runs });
  },
  file: () => {
    const options = {
      dir: temporaryDirectory(),
      fsync: 'never',
      ttl_ms: TTL_MS,
      lease_ms: LEASE_MS,
    } as const;
    return () => new FileStore({ ...options, onError: (error) => expect.unreachable(error.message) });
  },
};
for (const [name, deploy] of Object.entries(await redisDeployments())) {
  if ('missing' in deploy) test.skip(`the ${name} store (skipped: ${deploy.missing})`, () => {});
  else deployments[name] = () => deploy({ ttl_ms: TTL_MS, lease_ms: LEASE_MS });
}

const contextOf = (store: Store): RunContext => ({
  configuration: { ...DEFAULTS, resume: { ...DEFAULTS.resume, salvage_after_ms: SALVAGE_AFTER_MS } },
  transport: { open: () => Promise.reject(new Error('nothing is asked for')), close: async () => {} },
  store,
  scheduler: new CheckpointScheduler({ interval_ms: 100, time: systemTime }),
  capabilities: new CapabilityMemory(systemTime),
  metrics: METRICS,
  log: pino({ level: 'silent' }),
  time: systemTime,
  random: Math.random,
});

describe.each(Object.keys(deployments))('a partial that is salvaged in the %s store', (name) => {
  /** Replicas on one store with a run of a thread that lost its replica; and what the thread's requests have told. */
  async function deploy() {
    const openReplica = deployments[name]?.() as OpenReplica;
    const open = async () => {
      const store = await openReplica();
      onTestFinished(() => store.close());
      return store;
    };
    const lost = await open();
    const run = newRunId();
    const lease = await lost.acquire(run, OWNER);
    const header = { seq: 0, header: { ...HEADER, thread: THREAD }, events: [] };
    await lost.append(lease, [header, textRecord(0, 'Kelp')]);
    await lost.close();

    const store = await open();
    const board = new NoticeBoard({ ...contextOf(store), time: PATIENCE });
    /** A request of the thread, with what becomes of it. How many notices it had. */
    const ask = async (fate: Fate = 'told'): Promise<number> => {
      const pending = await board.take({ owner: OWNER, thread: THREAD, messages: [] });
      await pending?.settle(fate);
      return pending?.notices.length ?? 0;
    };
    return { run, store, open, ask };
  }

  function sweep(store: Store): Salvage {
    const salvage = createRunSalvage(contextOf(store));
    onTestFinished(() => salvage.close());
    salvage.start();
    return salvage;
  }

  const untilSalvaged = (store: Store, run: RunId): Promise<void> =>
    vi.waitFor(async () => {
      expect((await store.read(run, OWNER, 0))?.status).toBe('recovered_from_partial');
    }, SALVAGED);

  /** Has the store fail to seal the run once. Resolves when it has, after `meanwhile`. */
  function failOnce(store: Store, meanwhile: () => Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    vi.spyOn(store, 'finish').mockImplementationOnce(async () => {
      await meanwhile();
      resolve();
      throw new Error('no route to store');
    });
    return promise;
  }

  test('is told', async () => {
    const { run, store, ask } = await deploy();
    sweep(store);
    await untilSalvaged(store, run);
    expect(await ask()).toBe(1);
    expect(await ask()).toBe(0);
  });

  test('is told once, when the store fails to seal it and it is salvaged again', async () => {
    const { run, store, ask } = await deploy();
    const told: number[] = [];
    const failed = failOnce(store, async () => told.push(await ask()));
    sweep(store);
    await failed;
    await untilSalvaged(store, run);
    expect([...told, await ask()]).toEqual([1, 0]);
  });

  test('is told once, when another replica salvages it again', async () => {
    const { run, store, open, ask } = await deploy();
    const told: number[] = [];
    const failed = failOnce(store, async () => told.push(await ask()));
    const first = sweep(store);
    await failed;
    await first.close();
    sweep(await open());
    await untilSalvaged(store, run);
    expect([...told, await ask()]).toEqual([1, 0]);
  });

  test('is told once, when the request that was to tell it failed meanwhile', async () => {
    const { run, store, ask } = await deploy();
    const failed = failOnce(store, () => ask('unseen'));
    sweep(store);
    await failed;
    await untilSalvaged(store, run);
    expect([await ask(), await ask()]).toEqual([1, 0]);
  });
});
