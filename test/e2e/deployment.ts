import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { PROMPT_END, textOf } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { PROVIDER_WIRES, wireAt } from '../provider/wires/registry.ts';
import { HoldfastProcess } from './holdfast-process.ts';

/** Long enough for a busy machine, short enough for a test. */
const IMPATIENT_CLOCKS = {
  first_byte_ms: 1000,
  first_token_ms: 2000,
  idle_ms: 1000,
  progress_ms: 2000,
  progress_reasoning_ms: 2000,
};

/**
 * `h1` is a provider over HTTP/1.1, `h2` one over TLS and HTTP/2. `impatient` is `h1` with short clocks, and `brief` is
 * `h1` with a short limit for the whole attempt. `vllm` accepts prefills. `direct` is `h1` for requests that don't
 * stream, passed through unchanged.
 */
export type Upstream = 'h1' | 'h2' | 'impatient' | 'brief' | 'vllm' | 'direct';

/** The model's name selects the upstream. What Holdfast learns about one model doesn't affect the others. */
export const modelOf = (upstream: string, model = 'model'): string => `${upstream}-${model}`;

interface PlannedRun {
  readonly plan: Plan;
  readonly requests: RecordedRequest[];
}

/** Less than the shortest answers that tests cut in the middle. */
const UNDER_WAY_BYTES = 4096;
const POLL_MS = 5;

/** The sections are merged over the deployment's own configuration. */
export interface DeploymentOptions {
  readonly upstreams?: Readonly<Record<string, object>>;
  readonly recovery?: object;
  readonly checkpoint?: object;
  readonly limits?: object;
  readonly resume?: object;
  readonly tracing?: object;
  /** Required if the store isn't a directory; a directory keeps its own secret. */
  readonly secret?: string;
  /** The store as each replica reaches it, if that differs between replicas. */
  readonly stores?: readonly string[];
  /** How many processes share the file store; 1 by default. */
  readonly replicas?: number;
  /** How far the time of day is off on every other replica, in alternating directions. */
  readonly clock_skew_ms?: number;
  /** Sent to providers that accept prefills, instead of the client's key. */
  readonly apiKey?: string;
  /** Processes of each replica; 1 by default. */
  readonly workers?: number;
  /** Node options for every replica. */
  readonly flags?: readonly string[];
}

/** Where a replica listens; port 0 picks a free port. */
export interface Listen {
  readonly port: number;
  readonly admin_port: number;
  readonly cors_origins?: readonly string[];
}

/** Holdfast processes with a file store, and the providers behind them. */
export class Deployment {
  readonly #replicas: HoldfastProcess[] = [];
  readonly #startReplica: (listen?: Listen) => Promise<HoldfastProcess>;
  /** The store's directory, which all replicas share, along with the secret. */
  readonly store: string;
  readonly #providers: readonly Provider[];
  readonly #runs = new Map<string, PlannedRun>();
  readonly #arrivals = new EventEmitter();

  private constructor(
    startReplica: (listen?: Listen) => Promise<HoldfastProcess>,
    store: string,
    providers: readonly Provider[],
  ) {
    this.#startReplica = startReplica;
    this.store = store;
    this.#providers = providers;
    this.#arrivals.setMaxListeners(0);
    for (const provider of providers) {
      provider.respond((request) => {
        const run = this.#runs.get(questionOf(request));
        run?.requests.push(request);
        this.#arrivals.emit('request');
        return run?.plan;
      });
    }
  }

  static async start(options: DeploymentOptions = {}): Promise<Deployment> {
    const { apiKey } = options;
    const [h1, h2] = await Promise.all([
      startProvider({ protocol: 'http1' }),
      startProvider({ protocol: 'h2' }),
    ]);
    const store = join(mkdtempSync(join(tmpdir(), 'holdfast-e2e-')), 'store');
    const upstreams = {
      h1: { base_url: h1.url },
      h2: { base_url: h2.url, ca_file: 'ca.pem' },
      impatient: { base_url: h1.url, clocks: IMPATIENT_CLOCKS },
      brief: { base_url: h1.url, clocks: { attempt_ms: 400 } },
      direct: { base_url: h1.url },
      vllm: { base_url: h1.url, dialect: 'vllm', ...(apiKey !== undefined && { api_key: apiKey }) },
      // The model's name says that it continues a prefix.
      'claude-sonnet-4-5': { base_url: h1.url },
      ...options.upstreams,
    };
    const configuration = {
      ...(options.secret !== undefined && { secret: options.secret }),
      ...(options.workers !== undefined && { workers: options.workers }),
      upstreams,
      routes: Object.keys(upstreams).map((upstream) => ({
        model: `${upstream}-*`,
        targets: [{ upstream }],
        ...(upstream === 'direct' && { non_streaming: 'pass_through' }),
      })),
      recovery: { backoff_ms: 1, backoff_max_ms: 10, ...options.recovery },
      checkpoint: { store: `file:${store}`, ...options.checkpoint },
      limits: { ...options.limits },
      resume: { ...options.resume },
      tracing: { ...options.tracing },
    };
    const { clock_skew_ms = 0, stores = [] } = options;
    const skews = [0, clock_skew_ms, 0, -clock_skew_ms];
    let started = 0;
    const startReplica = (listen?: Listen) => {
      const checkpoint = { ...configuration.checkpoint, ...(stores[started] && { store: stores[started] }) };
      return HoldfastProcess.start(
        { ...configuration, checkpoint, ...(listen && { listen }) },
        { 'ca.pem': h2.ca ?? '' },
        skews[started++ % skews.length],
        options.flags,
      );
    };
    const deployment = new Deployment(startReplica, store, [h1, h2]);
    await Promise.all(Array.from({ length: options.replicas ?? 1 }, () => deployment.addReplica()));
    return deployment;
  }

  /** Starts another process on the same store, as a restart would. */
  async addReplica(listen?: Listen): Promise<HoldfastProcess> {
    const replica = await this.#startReplica(listen);
    this.#replicas.push(replica);
    return replica;
  }

  get replicas(): readonly HoldfastProcess[] {
    return this.#replicas;
  }

  /** The first replica. */
  get holdfast(): HoldfastProcess {
    return this.#replica(0);
  }

  /** The second replica. */
  get other(): HoldfastProcess {
    return this.#replica(1);
  }

  /** Sets the answer to this first user message. Every run needs its own question. */
  plan(question: string, plan: Plan): void {
    if (this.#runs.has(question)) throw new Error(`there is a plan for ${question} already`);
    this.#runs.set(question, { plan, requests: [] });
  }

  /** The requests that providers received for a question, in order. */
  requests(question: string): readonly RecordedRequest[] {
    return this.#runs.get(question)?.requests ?? [];
  }

  /** Resolves once a client has left a request for this question, with the time on the `Date.now()` clock. */
  async abandoned(question: string): Promise<number> {
    for (;;) {
      const left = this.requests(question).find(({ aborted_at_ms }) => aborted_at_ms !== undefined);
      if (left?.aborted_at_ms !== undefined) return left.aborted_at_ms;
      await Promise.race(this.#providers.map((provider) => provider.waitForAborts(abortsOf(provider) + 1)));
    }
  }

  /** Resolves once providers have received this many requests for a question. */
  async asked(question: string, count = 1): Promise<void> {
    while (this.requests(question).length < count) await once(this.#arrivals, 'request');
  }

  /** Resolves once a provider has sent {@link UNDER_WAY_BYTES} of its latest answer to each question. */
  async underWay(...questions: readonly string[]): Promise<void> {
    const isUnderWay = (question: string) =>
      (this.requests(question).at(-1)?.sent.bytes ?? 0) >= UNDER_WAY_BYTES;
    while (!questions.every(isUnderWay)) await setTimeout(POLL_MS);
  }

  /** Rejects if a process logged errors or warnings, or a provider couldn't perform a fault. */
  async close(): Promise<void> {
    try {
      await Promise.all([...this.replicas, ...this.#providers].map((each) => each.close()));
    } finally {
      rmSync(dirname(this.store), { recursive: true });
    }
  }

  #replica(index: number): HoldfastProcess {
    const replica = this.replicas[index];
    if (!replica) throw new Error(`this deployment has no replica ${index}`);
    return replica;
  }
}

const abortsOf = ({ requests }: Provider): number =>
  requests.filter(({ aborted_at_ms }) => aborted_at_ms !== undefined).length;

function questionOf({ path, body }: RecordedRequest): string {
  const wire = wireAt(path);
  const request = wire && PROVIDER_WIRES[wire].request(body);
  const said = textOf(request?.messages.find(({ role }) => role === 'user')).replace(PROMPT_END, '');
  // Holdfast may add a notice to the user's message.
  return said.replace(/\s*last_partial_recovery: .*$/s, '');
}
