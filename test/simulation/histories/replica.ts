import { CheckpointScheduler } from '../../../src/checkpoint/checkpoint-scheduler.ts';
import { parseRedisUrl } from '../../../src/checkpoint/redis/address.ts';
import { RedisStore } from '../../../src/checkpoint/redis/store.ts';
import type { Salvage } from '../../../src/checkpoint/salvage.ts';
import { createProofs } from '../../../src/checkpoint/seal.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import type { Configuration } from '../../../src/config/configuration.ts';
import { ApiError } from '../../../src/lib/errors.ts';
import { MemoryBudget } from '../../../src/lib/memory-budget.ts';
import { PauseWatch } from '../../../src/lib/pause-watch.ts';
import { ActiveWork } from '../../../src/proxy/api/api-context.ts';
import { detachTimeoutOf } from '../../../src/proxy/api/respond.ts';
import { attached, continueUnattended, type UnattendedContext } from '../../../src/proxy/api/return.ts';
import { follow } from '../../../src/proxy/resume/follow.ts';
import { reachable } from '../../../src/proxy/resume/reachable.ts';
import type { Reader } from '../../../src/proxy/resume/reader.ts';
import { makeKnown, readRun } from '../../../src/proxy/resume/stored-runs.ts';
import { successionOf, successorOf } from '../../../src/proxy/resume/succession.ts';
import { HAND_OVER, LEFT } from '../../../src/proxy/run/context/run.ts';
import type { RunContext } from '../../../src/proxy/run/context/run-context.ts';
import { NO_OBSERVER } from '../../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../../src/proxy/run/relay.ts';
import { RunRegistry } from '../../../src/proxy/run/run-registry.ts';
import { createRunSalvage } from '../../../src/proxy/run/run-salvage.ts';
import { RouteTable } from '../../../src/proxy/upstream/route-table.ts';
import { HealthRegistry } from '../../../src/proxy/upstream/target-health.ts';
import { CapabilityMemory } from '../../../src/proxy/wires/dialects/capability-memory.ts';
import { configurationOf, METRICS, OWNER, RUN, runOf, SILENT_LOG } from '../simulate.ts';
import type { Deployment } from './deployment.ts';
import { type History, LEASE_MS } from './history.ts';
import type { SimulatedConnection } from './simulated-connection.ts';
import { SimulatedProcess } from './simulated-process.ts';
import { COMMAND_MS, SimulatedRedisClient } from './simulated-redis-client.ts';

const ADDRESS = parseRedisUrl('redis://127.0.0.1:1/0');
const INTERVAL_MS = 100;
/** Longer than any answer lasts. A reader elsewhere would extend the time, which these histories don't cover. */
const DETACHED_MS = 20_000;
const SALVAGE_AFTER_MS = 1500;
const HAND_OVER_MS = 2000;
const TTL_S = 3600;
const SECRET = 'the secret of the simulated deployment';
const PROOFS = createProofs(SECRET);
const TOOLS = [{ type: 'function', function: { name: 'act', parameters: { type: 'object' } } }];

/** What a client already has when it resumes a run. */
export interface Had {
  readonly run: RunId;
  readonly payloads: readonly string[];
  /** The id of its last event. */
  readonly id: string | undefined;
}

/** One process of Holdfast, with a simulated clock, network and HTTP server; everything else is real. */
export class Replica {
  readonly process: SimulatedProcess;
  readonly redisClient: SimulatedRedisClient;
  readonly store: RedisStore;
  readonly #deployment: Deployment;
  readonly #context: RunContext;
  readonly #salvage: Salvage;
  /** The runs that continue without a client. */
  readonly #registry: RunRegistry;
  readonly #connections = new Set<SimulatedConnection>();
  readonly #runs = new Set<AbortController>();
  #isDraining: boolean = false;

  constructor(deployment: Deployment, index: number) {
    const { time, redis, history, provider, random } = deployment;
    this.#deployment = deployment;
    this.process = new SimulatedProcess(time, history.skews_ms[index % history.skews_ms.length] ?? 0);
    this.redisClient = new SimulatedRedisClient(this.process, time, redis);
    this.store = new RedisStore({
      address: ADDRESS,
      client: this.redisClient.asRedisClient(),
      time: this.process,
      command_ms: COMMAND_MS,
      ttl_ms: TTL_S * 1000,
      lease_ms: LEASE_MS,
      seal: PROOFS,
      onError: () => {},
      onOutage: () => {},
      onRecovery: () => {},
    });
    const append = this.store.append.bind(this.store);
    this.store.append = async (lease, records) => {
      const seq = await append(lease, records);
      deployment.acknowledged(lease.run, records);
      return seq;
    };
    this.#context = {
      configuration: configurationFor(history),
      transport: provider.transport(this.process),
      store: this.store,
      scheduler: new CheckpointScheduler({ interval_ms: INTERVAL_MS, time: this.process }),
      pauses: new PauseWatch(this.process, LEASE_MS / 3),
      observer: NO_OBSERVER,
      capabilities: new CapabilityMemory(this.process),
      metrics: METRICS,
      log: SILENT_LOG,
      time: this.process,
      random,
    };
    const { configuration } = this.#context;
    this.#registry = new RunRegistry(configuration.limits);
    const unattended: UnattendedContext = {
      ...this.#context,
      secret: SECRET,
      work: new ActiveWork(),
      registry: this.#registry,
      memory: new MemoryBudget(),
      models: new RouteTable(configuration),
      healths: new HealthRegistry(configuration),
    };
    this.#salvage = createRunSalvage(this.#context, async (orphan) =>
      this.#isDraining ? 'later' : continueUnattended(orphan, unattended),
    );
  }

  async start(): Promise<void> {
    await this.store.start({ required: false });
    this.#salvage.start();
  }

  kill(): void {
    this.process.kill();
    for (const connection of this.#connections) connection.close({ kind: 'broken' });
  }

  /** Hands the runs over and exits. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    for (const run of this.#runs) run.abort(HAND_OVER);
    await Promise.all([this.#registry.handOver(this.process, HAND_OVER_MS), this.#salvage.close()]);
    await this.store.close();
    this.kill();
  }

  /** Serves a request that begins the run. */
  begin(connection: SimulatedConnection): void {
    this.#serve(connection, async (gone) => {
      gone.outlives = RUN;
      await relay(this.#run(RUN, gone.signal), connection, this.#context);
    });
  }

  /** Serves a request to resume the run; `had` is what its client already has. */
  resume(connection: SimulatedConnection, had: Had): void {
    this.#serve(connection, (gone) => this.#resume(had.run, connection, had, gone));
  }

  async #resume(run: RunId, connection: SimulatedConnection, had: Had, gone: Session): Promise<void> {
    const context = this.#context;
    const stored = await readRun(run, OWNER, context).catch(async (error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      await makeKnown(run, OWNER, context);
      return readRun(run, OWNER, context);
    });
    const [of, epoch] = had.id?.split('.') ?? [];
    const reader: Reader = {
      run,
      owner: OWNER,
      cursor: had.payloads.length,
      tail: had.payloads,
      ...(of === run && epoch !== undefined && { epoch }),
      asked: { wire: 'chat_completions', events: 'none' },
      signal: gone.signal,
      resumable: true,
      revive: () => this.#run(run, gone.signal),
      onTakenOver: () => {
        gone.outlives = run;
        void attached(run, OWNER, context);
      },
    };
    const left = successionOf(stored, reader);
    if (left?.stored.records[0]?.header) {
      const { body, digest = '' } = this.#run(run, gone.signal);
      const next = await successorOf({ run, owner: OWNER, ...left, digest, body }, context);
      return this.#resume(next, connection, had, gone);
    }
    if (!reachable(stored, reader)) return connection.reject(409);
    await follow(reader, stored, connection, context);
  }

  #serve(connection: SimulatedConnection, deliver: (session: Session) => Promise<void>): void {
    this.#connections.add(connection);
    if (this.process.isDead) connection.close({ kind: 'broken' });
    this.process.receive(() => {
      if (this.#isDraining) {
        connection.reject(503);
        return;
      }
      const session = new Session();
      this.#runs.add(session);
      void connection.over.then(({ kind }) => {
        this.#connections.delete(connection);
        // A client with its complete answer has not left, even if storing the end of the run takes long.
        if (kind === 'ended') return;
        this.process.receive(() => {
          if (!session.outlives) return session.abort(LEFT);
          if (this.#runs.has(session)) detachTimeoutOf(this.#context).onDetached(session.outlives, OWNER);
          this.process.after(DETACHED_MS, () => session.abort(LEFT));
        });
      });
      const failed = (error: unknown) => {
        if (error instanceof ApiError && !connection.opened) {
          connection.reject(error.status);
          return;
        }
        this.#deployment.errors.push(error);
        connection.close({ kind: 'broken' });
      };
      deliver(session)
        .catch(failed)
        .finally(() => this.#runs.delete(session));
    });
  }

  #run(id: RunId, signal: AbortSignal) {
    const { calls } = this.#deployment.history.plan;
    const request = calls ? { tools: TOOLS } : {};
    return { ...runOf({ dialect: 'vllm', request }, signal, true), id, digest: 'digest' };
  }
}

/** Aborts the delivery. */
class Session extends AbortController {
  /** The run that continues for a while after its client has left. */
  outlives: RunId | undefined;
}

/** In half of the histories the key belongs to the operator, so runs continue without their clients. */
function configurationFor({ durability, seed }: History): Configuration {
  const configuration = configurationOf({ dialect: 'vllm' });
  const { default: upstream } = configuration.upstreams;
  const isKeyed = seed % 2 === 0;
  return {
    ...configuration,
    ...(isKeyed && upstream && { upstreams: { default: { ...upstream, api_key: 'key' } } }),
    checkpoint: {
      ...configuration.checkpoint,
      durability,
      lease_ms: LEASE_MS,
      command_ms: COMMAND_MS,
      interval_ms: INTERVAL_MS,
      ttl_s: TTL_S,
    },
    resume: { ...configuration.resume, detached_ms: DETACHED_MS, salvage_after_ms: SALVAGE_AFTER_MS },
  };
}
