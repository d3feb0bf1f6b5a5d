import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import type { Fault } from '../provider/fault.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import type { Plan } from '../provider/script.ts';
import { readMessages } from '../simulation/messages-reading.ts';
import type { StreamReading } from '../simulation/reading.ts';
import { readResponses } from '../simulation/responses-reading.ts';
import { readStream } from '../simulation/stream-reading.ts';
import { HoldfastProcess } from './holdfast-process.ts';

const READERS = {
  chat_completions: readStream,
  completions: readStream,
  messages: readMessages,
  responses: readResponses,
} as const;

/** More requests than any target receives. */
export const ALWAYS = 20;
export const always = (fault: Fault): readonly Fault[] => Array.from({ length: ALWAYS }, () => fault);

/** A request body as the provider received it, on any wire. */
export interface SentBody {
  readonly model: string;
  readonly messages?: readonly Sent[];
  readonly input?: readonly Sent[];
  readonly prompt?: string;
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly max_output_tokens?: number;
  readonly [field: string]: unknown;
}
export type Sent = Readonly<Record<string, unknown>>;

export const bodyOf = ({ body }: RecordedRequest): SentBody => body as SentBody;
export const messagesOf = ({ messages, input }: SentBody): readonly Sent[] => messages ?? input ?? [];

/** The number of characters that a request takes of the context: the conversation, plus the limit of the answer. */
export function sizeOf(body: SentBody): number {
  const { max_tokens, max_completion_tokens, max_output_tokens, prompt } = body;
  const limit = max_tokens ?? max_completion_tokens ?? max_output_tokens ?? 0;
  return (prompt?.length ?? 0) + JSON.stringify(messagesOf(body)).length + 4 * limit;
}

const TOO_LONG = 'prompt is too long: 210000 tokens > 200000 maximum';
const refusalOn: Readonly<Record<WireName, object>> = {
  chat_completions: {
    error: { message: TOO_LONG, type: 'invalid_request_error', code: 'context_length_exceeded' },
  },
  completions: {
    error: { message: TOO_LONG, type: 'invalid_request_error', code: 'context_length_exceeded' },
  },
  messages: { type: 'error', error: { type: 'invalid_request_error', message: TOO_LONG } },
  responses: { error: { message: TOO_LONG, type: 'invalid_request_error', code: 'context_length_exceeded' } },
};

/** Decides what a provider answers, from the body and the number of earlier requests for this model. */
export type Say = (body: SentBody, before: number) => Plan;

/** A provider that refuses requests of more than `characters`, with the wire's error. */
export const takes =
  (characters: number, wire: WireName, say: Say): Say =>
  (body, before) => {
    const plan = say(body, before);
    const overflow: Fault = { kind: 'status', status: 400, body: refusalOn[wire] };
    return sizeOf(body) > characters ? { ...plan, faults: always(overflow) } : plan;
  };

/** What a client has in the end. */
export interface Told {
  readonly status: number;
  readonly body: string;
  readonly reading: StreamReading;
  readonly headers: Headers;
}

/** Processes, and providers that decide request by request what to answer. */
export class OverflowDeployment {
  readonly replicas: readonly HoldfastProcess[];
  readonly main: Provider;
  readonly larger: Provider;
  readonly scribe: Provider;
  readonly #says = new Map<string, Say>();
  /** The deployment's own temporary directory, if any. */
  #directory: string | undefined;

  private constructor(replicas: readonly HoldfastProcess[], [main, larger, scribe]: readonly Provider[]) {
    this.replicas = replicas;
    this.main = main as Provider;
    this.larger = larger as Provider;
    this.scribe = scribe as Provider;
    for (const [name, provider] of Object.entries({ main, larger, scribe })) {
      provider?.respond((request) => {
        const { model } = bodyOf(request);
        const before = this.#sentTo(provider, model).length - 1;
        return this.#says.get(`${name} ${model}`)?.(bodyOf(request), before);
      });
    }
  }

  /** `store` is what the replicas share, if there are several. */
  /** Starts two replicas that share a directory, which is removed with them. */
  static async startTwo(): Promise<OverflowDeployment> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-e2e-'));
    const two = await OverflowDeployment.start(2, `file:${directory}/store`);
    two.#directory = directory;
    return two;
  }

  static async start(replicas = 1, store = 'memory'): Promise<OverflowDeployment> {
    const providers = await Promise.all([startProvider(), startProvider(), startProvider()]);
    const [main, larger, scribe] = providers.map(({ url }) => url);
    const compression = { upstream: 'scribe', model: 'scribe', keep_messages: 8, summary_tokens: 256 };
    const small = { upstream: 'main', context_tokens: 1000 };
    const large = { upstream: 'larger', context_tokens: 2000 };
    const ahead = { ...compression, at_share: 0.5 };
    const configuration = {
      upstreams: {
        main: { base_url: main, dialect: 'vllm' },
        nudged: { base_url: main, dialect: 'openai' },
        thinker: { base_url: main?.replace('/v1', '/beta'), dialect: 'deepseek' },
        larger: { base_url: larger, dialect: 'vllm', api_key: 'key of the larger' },
        scribe: { base_url: scribe, dialect: 'vllm', api_key: 'key of the scribe' },
        unkeyed: { base_url: scribe, dialect: 'openai' },
      },
      routes: [
        { model: 'plain-*', targets: [{ upstream: 'main' }] },
        { model: 'nudged-*', targets: [{ upstream: 'nudged' }] },
        { model: 'thinker-*', targets: [{ upstream: 'thinker' }] },
        { model: 'two-*', targets: [small, large] },
        { model: 'short-*', targets: [{ upstream: 'main' }], compression },
        { model: 'short2-*', targets: [small, large], compression },
        { model: 'ahead-*', targets: [{ upstream: 'main', context_tokens: 2000 }], compression: ahead },
        { model: 'ahead2-*', targets: [{ ...large, context_tokens: 100_000 }, small], compression: ahead },
        {
          model: 'pieces-*',
          targets: [{ upstream: 'main' }],
          compression: { ...compression, context_tokens: 2048 },
        },
        {
          model: 'unkeyed-*',
          targets: [{ upstream: 'main' }],
          compression: { ...compression, upstream: 'unkeyed' },
        },
      ],
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      checkpoint: { store, lease_ms: 1000 },
    };
    const started = Array.from({ length: replicas }, () => HoldfastProcess.start(configuration));
    return new OverflowDeployment(await Promise.all(started), providers);
  }

  /** The first process. */
  get holdfast(): HoldfastProcess {
    const [first] = this.replicas;
    if (!first) throw new Error('nothing was started');
    return first;
  }

  /**
   * Sets a provider's answers to requests for a model. Requests to the summarising provider all name the model
   * `scribe`.
   */
  say(provider: 'main' | 'larger' | 'scribe', model: string, say: Say): void {
    this.#says.set(`${provider} ${model}`, say);
  }

  /** The bodies that a provider received for a model, in order. */
  sent(provider: 'main' | 'larger' | 'scribe', model: string): readonly SentBody[] {
    return this.#sentTo(this[provider], model).map(bodyOf);
  }

  #sentTo(provider: Provider, model: string): readonly RecordedRequest[] {
    return provider.requests.filter((request) => bodyOf(request).model === model);
  }

  open(
    wire: WireName,
    body: object,
    headers: object = {},
    signal?: AbortSignal,
    replica = this.holdfast,
  ): Promise<Response> {
    return fetch(replica.url + WIRES[wire].path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer client-key',
        ...(wire === 'messages' && { 'anthropic-version': '2023-06-01' }),
        ...headers,
      },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
  }

  async ask(wire: WireName, body: object, headers: object = {}, replica = this.holdfast): Promise<Told> {
    const response = await this.open(wire, body, headers, undefined, replica);
    const text = await response.text();
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    const reading = READERS[wire](isStream ? text : '', { live: false, parted: false });
    if (isStream) expect(reading.violations).toEqual([]);
    return { status: response.status, body: text, reading, headers: response.headers };
  }

  /** Rejects if a process logged errors or warnings, or a provider couldn't perform a fault. */
  async close(): Promise<void> {
    await Promise.all([...this.replicas, this.main, this.larger, this.scribe].map((each) => each.close()));
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true });
  }
}
