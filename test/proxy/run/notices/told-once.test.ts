import pino from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CheckpointScheduler } from '../../../../src/checkpoint/checkpoint-scheduler.ts';
import { FileStore } from '../../../../src/checkpoint/file/file-store.ts';
import type { WireName } from '../../../../src/checkpoint/journal.ts';
import { MemoryRuns } from '../../../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type { Salvage } from '../../../../src/checkpoint/salvage.ts';
import type { RunId, Store } from '../../../../src/checkpoint/store.ts';
import { PauseWatch } from '../../../../src/lib/pause-watch.ts';
import { systemTime, type Time } from '../../../../src/lib/time.ts';
import type { RunContext } from '../../../../src/proxy/run/context/run-context.ts';
import { NO_OBSERVER } from '../../../../src/proxy/run/context/run-observer.ts';
import { leaveLostCallNote, lostCallNote } from '../../../../src/proxy/run/notices/lost-calls.ts';
import type { Fate } from '../../../../src/proxy/run/notices/notice-board.ts';
import { NoticeBoard } from '../../../../src/proxy/run/notices/notice-board.ts';
import { createRunSalvage } from '../../../../src/proxy/run/run-salvage.ts';
import { CapabilityMemory } from '../../../../src/proxy/wires/dialects/capability-memory.ts';
import { WIRES } from '../../../../src/proxy/wires/registry.ts';
import {
  HEADER,
  newRunId,
  OWNER,
  STRANGER,
  temporaryDirectory,
  textRecord,
} from '../../../checkpoint/fixtures.ts';
import { needs } from '../../../needs.ts';
import { call, transcriptOf } from '../../../plans/saying.ts';
import { redisDeployments } from '../../../redis/deployments.ts';
import { DEFAULTS, METRICS } from '../../../simulation/simulate.ts';

const TTL_MS = 3_600_000;
const LEASE_MS = 600;
const SALVAGE_AFTER_MS = 100;
const SALVAGED = { timeout: 15_000, interval: 20 };
const THREAD = 'thread';

/** No wait for a store ends early, however busy the machine is. */
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

      ttl_ms: TTL_MS,
      lease_ms: LEASE_MS,
    } as const;
    return () => new FileStore({ ...options, onError: (error) => expect.unreachable(error.message) });
  },
};
for (const [name, deploy] of Object.entries(await redisDeployments())) {
  if ('missing' in deploy) test(`the ${name} store`, needs(deploy), () => {});
  else deployments[name] = () => deploy({ ttl_ms: TTL_MS, lease_ms: LEASE_MS });
}

const contextOf = (store: Store): RunContext => ({
  configuration: { ...DEFAULTS, resume: { ...DEFAULTS.resume, salvage_after_ms: SALVAGE_AFTER_MS } },
  transport: { open: () => Promise.reject(new Error('nothing is asked for')), close: async () => {} },
  store,
  scheduler: new CheckpointScheduler({ interval_ms: 100, time: systemTime }),
  pauses: new PauseWatch(systemTime, 1000),
  observer: NO_OBSERVER,
  capabilities: new CapabilityMemory(systemTime),
  metrics: METRICS,
  log: pino({ level: 'silent' }),
  time: systemTime,
  random: Math.random,
});

const WIRE_NOTICES = Object.values(WIRES).filter(({ notices }) => notices);
const CALL = { id: 'call_a', name: 'now', arguments: '{}' };
/** How the clients of each wire bring the result of {@link CALL}. */
const BRINGING: Partial<Record<WireName, readonly object[]>> = {
  chat_completions: [
    {
      messages: [
        { role: 'assistant', tool_calls: [{ id: CALL.id, function: { name: 'now', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: CALL.id, content: 'noon' },
      ],
    },
  ],
  messages: [
    {
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: CALL.id, name: 'now', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: CALL.id, content: 'noon' }] },
      ],
    },
  ],
  responses: [
    {
      input: [
        { type: 'function_call', id: 'fc_a', call_id: CALL.id, name: 'now', arguments: '{}' },
        { type: 'function_call_output', call_id: CALL.id, output: 'noon' },
      ],
    },
    {
      previous_response_id: 'resp_a',
      input: [{ type: 'function_call_output', call_id: CALL.id, output: 'noon' }],
    },
  ],
};

describe.each(Object.keys(deployments))('a call that was lost, left in the %s store', (name) => {
  const requests = WIRE_NOTICES.flatMap((wire) =>
    (BRINGING[wire.name] ?? []).map((request) => ({ wire, request })),
  );

  test.each(requests)(
    'is reported once by any replica, on $wire.name: $request',
    async ({ wire, request }) => {
      const open = deployments[name]?.() as OpenReplica;
      const stores = await Promise.all([open(), open()]);
      onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
      const [first, second] = stores as [Store, Store];
      const note = lostCallNote(newRunId(), [CALL], transcriptOf(call(1, 'tides')).toolCalls, ['resp_a']);
      if (!note) throw new Error('there is nothing to leave');
      await leaveLostCallNote(first.notes, OWNER, note, TTL_MS);
      const told = async (store: Store, owner = OWNER): Promise<number> => {
        const board = new NoticeBoard({ ...contextOf(store), time: PATIENCE });
        const pending = await board.claim({
          owner,
          answered: wire.notices?.answeredCalls({ ...request }) ?? [],
        });
        await pending?.settle('told');
        return pending?.notices.length ?? 0;
      };
      expect(await told(second, STRANGER)).toBe(0);
      const [one, other] = await Promise.all([told(first), told(second)]);
      expect(one + other).toBe(1);
      expect(await told(first)).toBe(0);
    },
  );
});

describe.each(Object.keys(deployments))('a partial that is salvaged in the %s store', (name) => {
  /** Replicas that share a store with a run of a thread, whose replica was lost. */
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
    /** Sends a request of the thread that ends in `fate`. Returns how many notices it had. */
    const ask = async (fate: Fate = 'told'): Promise<number> => {
      const pending = await board.claim({ owner: OWNER, thread: THREAD, answered: [] });
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

  /** Makes the store fail once to seal the run. Resolves once it has failed, after `meanwhile`. */
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

  test('is reported once, when the store fails to seal it and it is salvaged again', async () => {
    const { run, store, ask } = await deploy();
    const told: number[] = [];
    const failed = failOnce(store, async () => told.push(await ask()));
    sweep(store);
    await failed;
    await untilSalvaged(store, run);
    expect([...told, await ask()]).toEqual([1, 0]);
  });

  test('is reported once, when another replica salvages it again', async () => {
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

  test('is reported once, when the request that was to tell it failed meanwhile', async () => {
    const { run, store, ask } = await deploy();
    const failed = failOnce(store, () => ask('unseen'));
    sweep(store);
    await failed;
    await untilSalvaged(store, run);
    expect([await ask(), await ask()]).toEqual([1, 0]);
  });
});
