import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { completionRequest, textOf } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { HoldfastProcess } from './holdfast-process.ts';

/** Long enough for a busy machine, short enough for a test. */
const IMPATIENT_CLOCKS = {
  first_byte_ms: 250,
  first_token_ms: 500,
  idle_ms: 250,
  progress_ms: 500,
  progress_reasoning_ms: 500,
};

/**
 * What can be asked for, by the beginning of the model's name: `h1-…` is a provider over HTTP/1.1, `h2-…` one over
 * TLS and HTTP/2. `impatient-…` is the first one again, with clocks that run out soon.
 */
export const UPSTREAMS = ['h1', 'h2', 'impatient'] as const;
export type Upstream = (typeof UPSTREAMS)[number];

export const modelOf = (upstream: Upstream): string => `${upstream}-model`;

interface PlannedRun {
  readonly plan: Plan;
  readonly requests: RecordedRequest[];
}

/** A Holdfast process with a file store, and the providers behind it. */
export class Deployment {
  readonly holdfast: HoldfastProcess;
  readonly #providers: readonly Provider[];
  readonly #runs: Map<string, PlannedRun>;

  private constructor(
    holdfast: HoldfastProcess,
    providers: readonly Provider[],
    runs: Map<string, PlannedRun>,
  ) {
    this.holdfast = holdfast;
    this.#providers = providers;
    this.#runs = runs;
  }

  /** `tree` is laid over the configuration, section by section. */
  static async start(tree: Readonly<Record<string, object>> = {}): Promise<Deployment> {
    const runs = new Map<string, PlannedRun>();
    const [h1, h2] = await Promise.all([
      startProvider({ protocol: 'http1' }),
      startProvider({ protocol: 'h2' }),
    ]);
    for (const provider of [h1, h2]) {
      provider.respond((request) => {
        const run = runs.get(questionOf(request.body));
        run?.requests.push(request);
        return run?.plan;
      });
    }
    const configuration: Record<string, object> = {
      upstreams: {
        h1: { base_url: h1.url },
        h2: { base_url: h2.url, ca_file: 'ca.pem' },
        impatient: { base_url: h1.url, clocks: IMPATIENT_CLOCKS },
      },
      routes: UPSTREAMS.map((upstream) => ({ model: `${upstream}-*`, targets: [{ upstream }] })),
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      checkpoint: { store: 'file:store' },
    };
    for (const [section, keys] of Object.entries(tree)) {
      configuration[section] = { ...configuration[section], ...keys };
    }
    const holdfast = await HoldfastProcess.start(configuration, { 'ca.pem': h2.ca ?? '' });
    return new Deployment(holdfast, [h1, h2], runs);
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

  /** Rejects if a provider was told to do something it could not. */
  async close(): Promise<void> {
    await this.holdfast.close();
    for (const provider of this.#providers) await provider.close();
  }
}

const questionOf = (body: unknown): string =>
  textOf(completionRequest(body)?.messages.find(({ role }) => role === 'user'));
