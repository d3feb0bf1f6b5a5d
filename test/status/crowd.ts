import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { streamRequest } from '../e2e/raw-client.ts';
import { sendRequest } from '../e2e/stream-client.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { Plan } from '../provider/script.ts';

const NEVER_ENDING = {
  parts: [{ text: 'The tide comes in and goes out again. '.repeat(400) }],
  delay_ms: 2000,
};
const LONG = { ...NEVER_ENDING, delay_ms: 300 };
const SHORT = 'What holds fast to the rock is there when the tide is out again.';
const RATE_LIMITED = { error: { message: 'Too many requests.', type: 'rate_limit_error' } };
const TOOL = { id: 'call_1', name: 'look_up_the_tide', arguments: '{"port":"Brest"}' };
const SETTLED = { text: 'I look it up. ' };

/** A run's model determines how the run ends. */
export const MODELS = {
  long: ['gpt-5-mini', 'llama-4-70b', 'mistral-large', 'claude-sonnet-4-5'],
  /** Like `long`, but faster. */
  talks: ['command-a', 'grok-5', 'nova-pro', 'phi-5'],
  /** Cut in the middle, and continued. */
  cut: 'gpt-5',
  /** Cut twice, continued each time, and still running. */
  rescued: 'kimi-k3',
  /** Cut, and then rate limited. */
  waits: 'qwen-3-235b',
  complete: 'gpt-5-nano',
  /** Takes about a second. */
  paced: 'gpt-5-micro',
  recovered: 'llama-4-scout',
  salvaged: 'mistral-small',
  failed: 'deepseek-v4',
  refused: 'o9-preview',
  /** Its first target is unreachable. */
  elsewhere: 'gemma-4-27b',
} as const;

const SCRIPTS: Readonly<Record<string, Plan>> = {
  '*': LONG,
  ...Object.fromEntries(MODELS.long.map((model) => [model, NEVER_ENDING])),
  [MODELS.cut]: { ...NEVER_ENDING, delay_ms: 400, faults: [{ kind: 'reset', at: { event: 4 } }] },
  [MODELS.rescued]: {
    // The text never repeats itself, so there is only one way to join it.
    parts: [{ text: Array.from({ length: 400 }, (_, nth) => `Wave ${nth} comes in. `).join('') }],
    delay_ms: 250,
    faults: [
      { kind: 'reset', at: { event: 6 } },
      { kind: 'clean_eof', at: { event: 5 } },
    ],
  },
  [MODELS.waits]: {
    ...NEVER_ENDING,
    delay_ms: 100,
    faults: [
      { kind: 'error_openai', at: { event: 6 } },
      { kind: 'status', status: 429, headers: { 'retry-after': '500' }, body: RATE_LIMITED },
    ],
  },
  [MODELS.complete]: { parts: [{ text: SHORT }] },
  [MODELS.paced]: { parts: [{ text: SHORT }], delay_ms: 80 },
  [MODELS.elsewhere]: { parts: [{ text: SHORT }] },
  [MODELS.recovered]: {
    parts: [{ text: SHORT }],
    delay_ms: 5,
    faults: [
      { kind: 'reset', at: { event: 5 } },
      { kind: 'clean_eof', at: { event: 3 } },
    ],
  },
  [MODELS.refused]: {
    parts: [],
    faults: [
      { kind: 'status', status: 400, body: { error: { message: 'No.', type: 'invalid_request_error' } } },
    ],
  },
  [MODELS.salvaged]: {
    parts: [SETTLED, { tool: TOOL }, { text: SHORT }],
    delay_ms: 5,
    faults: [{ kind: 'reset', at: { event: 24 } }],
  },
  [MODELS.failed]: {
    parts: [{ text: SHORT }],
    delay_ms: 5,
    faults: Array.from({ length: 8 }, () => ({ kind: 'error_anthropic', at: { event: 4 } }) as const),
  },
};

/** A replica, a provider that misbehaves, and any number of clients. All of them end with the test. */
export class Crowd {
  readonly holdfast: HoldfastProcess;
  #asked = 0;

  private constructor(holdfast: HoldfastProcess) {
    this.holdfast = holdfast;
  }

  /** `tree` is merged over the configuration. */
  static async start(tree: Record<string, unknown> = {}): Promise<Crowd> {
    const provider: Provider = await startProvider({ scripts: SCRIPTS, record: false });
    onTestFinished(() => provider.close());
    const holdfast = await HoldfastProcess.start({
      upstreams: {
        primary: { base_url: provider.url },
        backup: { base_url: provider.url },
        gone: { base_url: 'http://127.0.0.1:9/v1' },
      },
      routes: [
        { model: 'gemma-*', targets: [{ upstream: 'gone' }, { upstream: 'backup' }] },
        { model: MODELS.waits, targets: [{ upstream: 'primary' }] },
        { model: '*', targets: [{ upstream: 'primary' }, { upstream: 'backup' }] },
      ],
      // The provider runs within the test, and has a thousand other requests to answer.
      clocks: { connect_ms: 120_000, first_byte_ms: 120_000, first_token_ms: 120_000 },
      recovery: { backoff_ms: 100, backoff_max_ms: 800, retry_after_max_s: 600 },
      limits: { runs_per_owner: 10_000, drain_ms: 1 },
      checkpoint: { store: 'memory' },
      ...tree,
    });
    onTestFinished(() => holdfast.close());
    return new Crowd(holdfast);
  }

  /** Begins runs whose answers are read and discarded; resolves once each of them has begun to answer. */
  async begin(model: string, count = 1): Promise<readonly BegunRun[]> {
    return await Promise.all(
      Array.from({ length: count }, () => this.#begin(model, `question ${this.#asked++}`)),
    );
  }

  /** Makes a step of a task: asks this model the task's n-th question. */
  step(
    model: string,
    nth: number,
    task: string,
    { session = 'first', parent }: StepOrigin = {},
  ): Promise<BegunRun> {
    const headers = {
      'holdfast-task': task,
      'holdfast-task-session': session,
      ...(parent !== undefined && { 'holdfast-parent-task': parent }),
    };
    return this.#begin(model, `question ${nth} of ${task}`, headers);
  }

  async #begin(model: string, question: string, headers: Record<string, string> = {}): Promise<BegunRun> {
    const request = sendRequest(this.holdfast.url, streamRequest(model, question), headers);
    const ended = Promise.withResolvers<void>();
    request.on('error', () => ended.resolve());
    onTestFinished(() => void request.destroy());
    const [response] = await once(request, 'response');
    response.on('error', () => {}).on('close', () => ended.resolve());
    response.resume();
    return {
      status: response.statusCode,
      run: String(response.headers['holdfast-run-id']),
      ended: ended.promise,
      leave: () => void request.destroy(),
    };
  }
}

interface StepOrigin {
  readonly session?: string;
  /** The parent of the step's task. */
  readonly parent?: string;
}

export interface BegunRun {
  readonly status: number;
  readonly run: string;
  readonly ended: Promise<void>;
  /** Leaves the run, which cancels it. */
  leave(): void;
}
