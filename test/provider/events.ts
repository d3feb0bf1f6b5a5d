import type { WireName } from '../../src/checkpoint/journal.ts';
import type { ChunkDelta } from './deltas.ts';
import type { Utterance } from './limits.ts';
import type { CachedTokens } from './prompt-cache.ts';
import type { CompletionRequest } from './request.ts';
import { promptTokens } from './request.ts';

/** The fields that all chunks of an answer share. */
export interface Envelope {
  readonly id: string;
  readonly model: string;
  /** Seconds since the Unix epoch. */
  readonly created: number;
  readonly wire?: WireName;
  /** For a response: it is generated whether or not a client listens. */
  readonly background?: boolean;
}

export interface TokenUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  /** For prompts with cache marks: the cached tokens. */
  readonly cached?: CachedTokens;
}

export interface EventStream {
  /** Complete server-sent events, `[DONE]` included. */
  readonly events: readonly string[];
  /** How many events there are up to and including the one with the finish reason. */
  readonly finished_after: number;
}

export const DONE = event('[DONE]');

export function event(data: unknown): string {
  return `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

export function chunk(envelope: Envelope, delta: object, finish: string | null, rest: object = {}): object {
  const { id, model, created, wire } = envelope;
  if (wire === 'completions') {
    const text = 'content' in delta ? delta.content : '';
    const choices = [{ text, index: 0, logprobs: null, finish_reason: finish }];
    return {
      id,
      object: 'text_completion',
      created,
      model,
      system_fingerprint: 'fp_script',
      choices,
      ...rest,
    };
  }
  return {
    id,
    object: 'chat.completion.chunk',
    created,
    model,
    system_fingerprint: 'fp_script',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...rest,
  };
}

/** `usage_in` is `none` if the request didn't ask for usage. */
export function eventsOf(
  { deltas, finish }: Utterance,
  envelope: Envelope,
  usage: TokenUsage,
  usage_in: 'final' | 'finish_chunk' | 'none',
): EventStream {
  // OpenAI sends `usage: null` in every other chunk if the last one will carry the usage.
  const pending = usage_in === 'final' ? { usage: null } : {};
  const middle = (delta: ChunkDelta | object) => event(chunk(envelope, delta, null, pending));
  const last = usage_in === 'finish_chunk' ? { usage } : pending;
  const opening =
    envelope.wire === 'completions' ? [] : [middle({ role: 'assistant', content: '', refusal: null })];
  const spoken = [...opening, ...deltas.map(middle)];
  const finished = [...spoken, event(chunk(envelope, {}, finish, last))];
  const totals = usage_in === 'final' ? [event(chunk(envelope, {}, null, { choices: [], usage }))] : [];
  return { events: [...finished, ...totals, DONE], finished_after: finished.length };
}

export function usageOf(
  request: CompletionRequest,
  deltas: readonly ChunkDelta[],
  characters_per_token?: number,
): TokenUsage {
  const prompt_tokens = promptTokens(request, characters_per_token);
  const completion_tokens = deltas.length;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
