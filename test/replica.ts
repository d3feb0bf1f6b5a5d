import { EventEmitter, once } from 'node:events';
import { PassThrough as Pipe } from 'node:stream';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { MemoryRuns } from '../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../src/checkpoint/memory/store.ts';
import type { RunIndex } from '../src/checkpoint/run-index.ts';
import type { Owner, RunId, StoredRun } from '../src/checkpoint/store.ts';
import { completeConfiguration, readConnections } from '../src/config/load.ts';
import { readWebhooks } from '../src/config/webhook-endpoints.ts';
import { createLogger } from '../src/lib/log.ts';
import { systemTime, type Time } from '../src/lib/time.ts';
import { Metrics } from '../src/metrics/metrics.ts';
import type { Follow } from '../src/proxy/api/api-context.ts';
import type { Relay } from '../src/proxy/run/context/run-context.ts';
import type { Transport } from '../src/proxy/upstream/transport.ts';
import { createUndiciTransport } from '../src/proxy/upstream/undici-transport.ts';
import { createServer, type Server } from '../src/server/server.ts';

export const SECRET = 'a secret for tests only';
const TTL_MS = 3_600_000;

/** A memory store that can fail, or stop answering, on demand. Replicas with the same `runs` share their data. */
export class ReplicaStore extends MemoryStore {
  /** If set, everything but appends and ends rejects with it. */
  fault: Error | undefined;
  /** If set, reads and notes never settle. */
  isSilent = false;
  override readonly index: RunIndex;
  readonly #calls = new EventEmitter();

  constructor(runs: MemoryRuns = new MemoryRuns()) {
    super({ time: systemTime, ttl_ms: TTL_MS, runs });
    this.index = {
      list: (owner, thread) => this.#answer(() => runs.index.list(owner, thread)),
      forget: (owner, entries) => this.#answer(() => runs.index.forget(owner, entries)),
    };
    for (const method of ['put', 'claim', 'get', 'consume'] as const) {
      const call = this.notes[method].bind(this.notes) as (...values: unknown[]) => Promise<unknown>;
      Object.assign(this.notes, { [method]: (...values: unknown[]) => this.#answer(() => call(...values)) });
    }
  }

  /** Resolves at the next call. */
  async asked(): Promise<void> {
    await once(this.#calls, 'call');
  }

  override read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    return this.#answer(() => super.read(run, owner, from));
  }

  override async check(): Promise<void> {
    await this.#answer(async () => {});
  }

  async #answer<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    this.#calls.emit('call');
    if (this.fault) throw this.fault;
    return this.isSilent ? new Promise<never>(() => {}) : call();
  }
}

/** Ends each run at once with a single event. */
export const shortRelay: Relay = async (_run, client) => {
  client.open({});
  client.end('data: [DONE]\n\n');
  return 'complete';
};

export interface Replica {
  readonly server: Server;
  readonly api: string;
  readonly admin: string;
  readonly store: ReplicaStore;
  readonly metrics: Metrics;
  /** Closes the log and returns everything written to it. */
  log(): Promise<string>;
}

/** The parts that differ from those of a single, idle replica. */
export interface ReplicaParts {
  readonly relay?: Relay;
  readonly follow?: Follow;
  /** Replicas with the same `runs` form one deployment. */
  readonly runs?: MemoryRuns;
  readonly transport?: Transport;
  /** The time for everything but the store. */
  readonly time?: Time;
}

/** Starts a replica on free ports and closes it when the test ends. `tree` is the content of the configuration file. */
export async function startReplica(
  tree: Record<string, unknown>,
  parts: Relay | ReplicaParts = {},
): Promise<Replica> {
  const {
    relay = shortRelay,
    follow,
    runs,
    time = systemTime,
    ...given
  } = typeof parts === 'function' ? { relay: parts } : parts;
  const configuration = completeConfiguration({
    checkpoint: { store: 'memory' },
    listen: { port: 0, admin_port: 0 },
    ...tree,
  });
  const store = new ReplicaStore(runs);
  const metrics = new Metrics();
  const lines = new Pipe();
  const log = createLogger('trace', lines);
  const transport = given.transport ?? createUndiciTransport(readConnections(configuration));
  const server = createServer(configuration, {
    relay,
    ...(follow && { follow }),
    store,
    metrics,
    transport,
    time,
    secret: SECRET,
    webhooks: readWebhooks(configuration),
    log,
  });
  onTestFinished(async () => {
    await server.close();
    if (!given.transport) await transport.close();
  });
  const urls = await server.listen();
  return { server, ...urls, store, metrics, log: () => text(lines.end()) };
}

/** An upstream without a listener: tests never open port 9 of a loopback address. */
export const NO_UPSTREAM_URL = 'http://127.0.0.1:9/v1';

export const upstreamsAt = (base_url: string, more: Record<string, unknown> = {}) => ({
  upstreams: { provider: { base_url, ...more } },
});
