import { EventEmitter, once } from 'node:events';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { completionRequest, textOf } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { HoldfastProcess } from './holdfast-process.ts';

/** Long enough for a busy machine, short enough for a test. */
const IMPATIENT_CLOCKS = {
  first_byte_ms: 400,
  first_token_ms: 800,
  idle_ms: 400,
  progress_ms: 800,
  progress_reasoning_ms: 800,
};

/**
 * `h1` is a provider over HTTP/1.1, `h2` one over TLS and HTTP/2. `impatient` is the first one again, with clocks
 * that run out soon. `brief` is, too, with little time for an attempt as a whole.
 */
export type Upstream = 'h1' | 'h2' | 'impatient' | 'brief';

/** Which upstream a request goes to is told by its model. */
export const modelOf = (upstream: string): string => `${upstream}-model`;

interface PlannedRun {
  readonly plan: Plan;
  readonly requests: RecordedRequest[];
}

/** Sections are laid over what the deployment configures by itself. */
export interface DeploymentOptions {
  readonly upstreams?: Readonly<Record<string, object>>;
  readonly recovery?: object;
  readonly checkpoint?: object;
  readonly limits?: object;
}

/** A Holdfast process with a file store, and the providers behind it. */
export class Deployment {
  readonly holdfast: HoldfastProcess;
  readonly #providers: readonly Provider[];
  readonly #runs = new Map<string, PlannedRun>();
  readonly #arrivals = new EventEmitter();

  private constructor(holdfast: HoldfastProcess, providers: readonly Provider[]) {
    this.holdfast = holdfast;
    this.#providers = providers;
    this.#arrivals.setMaxListeners(0);
    for (const provider of providers) {
      provider.respond((request) => {
        const run = this.#runs.get(questionOf(request.body));
        run?.requests.push(request);
        this.#arrivals.emit('request');
        return run?.plan;
      });
    }
  }

  static async start(options: DeploymentOptions = {}): Promise<Deployment> {
    const [h1, h2] = await Promise.all([
      startProvider({ protocol: 'http1' }),
      startProvider({ protocol: 'h2' }),
    ]);
    const upstreams = {
      h1: { base_url: h1.url },
      h2: { base_url: h2.url, ca_file: 'ca.pem' },
      impatient: { base_url: h1.url, clocks: IMPATIENT_CLOCKS },
      brief: { base_url: h1.url, clocks: { attempt_ms: 400 } },
      ...options.upstreams,
    };
    const configuration = {
      upstreams,
      routes: Object.keys(upstreams).map((upstream) => ({
        model: modelOf(upstream),
        targets: [{ upstream }],
      })),
      recovery: { backoff_ms: 1, backoff_max_ms: 10, ...options.recovery },
      checkpoint: { store: 'file:store', ...options.checkpoint },
      limits: { ...options.limits },
    };
    const holdfast = await HoldfastProcess.start(configuration, { 'ca.pem': h2.ca ?? '' });
    return new Deployment(holdfast, [h1, h2]);
  }

  /** Whoever asks this, as the first user message, is told this. Every run needs a question of its own. */
  plan(question: string, plan: Plan): void {
    if (this.#runs.has(question)) throw new Error(`there is a plan for ${question} already`);
    this.#runs.set(question, { plan, requests: [] });
  }

  /** What providers were sent on account of a question, in order. */
  requests(question: string): readonly RecordedRequest[] {
    return this.#runs.get(question)?.requests ?? [];
  }

  /** Resolves when the client of a request made for this question has left it, with the time, as `Date.now()` has it. */
  async abandoned(question: string): Promise<number> {
    for (;;) {
      const left = this.requests(question).find(({ aborted_at_ms }) => aborted_at_ms !== undefined);
      if (left?.aborted_at_ms !== undefined) return left.aborted_at_ms;
      await Promise.race(this.#providers.map((provider) => provider.waitForAborts(abortsOf(provider) + 1)));
    }
  }

  /** Resolves when providers have been sent that many requests for this question. */
  async asked(question: string, count = 1): Promise<void> {
    while (this.requests(question).length < count) await once(this.#arrivals, 'request');
  }

  /** Rejects if the process had complaints, or a provider was told to do something it could not. */
  async close(): Promise<void> {
    await Promise.all([this.holdfast, ...this.#providers].map((each) => each.close()));
  }
}

const abortsOf = ({ requests }: Provider): number =>
  requests.filter(({ aborted_at_ms }) => aborted_at_ms !== undefined).length;

const questionOf = (body: unknown): string =>
  textOf(completionRequest(body)?.messages.find(({ role }) => role === 'user'));
