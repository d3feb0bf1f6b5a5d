import type { EventSourceMessage } from 'eventsource-parser';
import { failureStatusOf, providerErrorIn } from '../../../interrupts/provider-error.ts';
import { isObject, parseJson } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import { dataOf, MALFORMED, strayValue, unparsedEvent } from '../common/event-data.ts';
import type { AnswerEvent, WireEvent, WireReader } from '../common/wire.ts';

/** A chat completion chunk from a provider. Any field may be missing, and others may exist. */
export interface ChatChunk {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  model?: unknown;
  choices?: unknown;
  usage?: unknown;
  error?: unknown;
  [field: string]: unknown;
}

export interface ChatChoice {
  index?: unknown;
  delta?: ChatDelta | null;
  finish_reason?: unknown;
  logprobs?: unknown;
  [field: string]: unknown;
}

export interface ChatDelta {
  role?: unknown;
  content?: unknown;
  refusal?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  [field: string]: unknown;
}

export interface ChatToolCall {
  index?: unknown;
  id?: unknown;
  type?: unknown;
  function?: { name?: unknown; arguments?: unknown; [field: string]: unknown } | null;
  [field: string]: unknown;
}

/** A chunk that is part of the answer. */
export interface ChunkEvent extends AnswerEvent {
  /** Verbatim, on one line. */
  readonly payload: string;
  readonly chunk: ChatChunk;
  /** `chunk` belongs to an earlier event that differs only in its text. */
  readonly fitsTemplate?: true;
  /** The chunk contains a role. */
  readonly role: boolean;
}

export type ChunkReading = WireEvent<ChunkEvent>;

const NO_DELTAS: readonly Delta[] = [];
/** Enough for a filter result, the role and some content: each may identify the server. */
const FIRST_TRACES = 3;

/** Reads the events of one attempt on a wire with chunks and choices that ends with `[DONE]`. */
export abstract class ChunkReader implements WireReader<ChunkEvent> {
  readonly #first: ChatChunk[] = [];
  #finishing: ChatChunk | undefined;
  #report: ChatChunk | undefined;

  /** The first chunks, the finishing one and the usage report. */
  get samples(): ChatChunk[] {
    return [...this.#first, this.#finishing, this.#report].filter((chunk) => chunk !== undefined);
  }

  /** The content of the choice, without its finish reason; `undefined` if unreadable. */
  protected abstract said(choice: ChatChoice): readonly Delta[] | undefined;

  /** Whether the choice contains a role. */
  protected abstract hasRole(choice: ChatChoice): boolean;

  read(event: EventSourceMessage): ChunkReading {
    return this.readData(dataOf(event), event.event);
  }

  protected readData(data: string, name: string | undefined): ChunkReading {
    if (data.length < 10 && data.trim() === '[DONE]') return { kind: 'done' };
    let chunk: unknown;
    try {
      chunk = parseJson(data);
    } catch {
      return unparsedEvent(data, name);
    }
    if (!isObject(chunk)) {
      const error = providerErrorIn(chunk);
      return error ? { kind: 'error_event', error } : strayValue(chunk);
    }
    return this.#readChunk(chunk, data, name);
  }

  #readChunk(chunk: ChatChunk, data: string, name: string | undefined): ChunkReading {
    if (this.#first.length < FIRST_TRACES) this.#first.push(chunk);
    const choices = chunk.choices;
    if (chunk.error || !Array.isArray(choices) || name === 'error') {
      // Checked before the choices, because one event may contain an error and a finish reason.
      const error = providerErrorIn(chunk) ?? (name === 'error' ? { words: [], message: data } : undefined);
      if (error) return { kind: 'error_event', error };
    }
    if (isObject(choices)) return strayValue(choices);
    if (!Array.isArray(choices) || choices.length === 0) {
      if (chunk.usage && !this.#first.includes(chunk)) this.#report ??= chunk;
      // Pings, prompt filters or the usage report: not part of the answer, but the provider would send them to the
      // client.
      return {
        kind: 'answer',
        payload: data,
        chunk,
        deltas: usageDeltas(chunk.usage),
        role: false,
        manyChoices: false,
        ...(!Array.isArray(choices) && { ping: true }),
      };
    }
    const choice: unknown = choices[0];
    if (!isObject(choice)) return MALFORMED;
    const manyChoices = choices.length > 1 || (choice.index ?? 0) !== 0;
    const reason = choice.finish_reason;
    if (typeof reason === 'string') {
      const status = failureStatusOf(reason);
      if (status !== undefined) return { kind: 'bad_finish', reason, status };
    }
    const finishes = typeof reason === 'string' && reason !== '';
    if (finishes && !this.#first.includes(chunk)) this.#finishing ??= chunk;
    const said = this.said(choice);
    if (!said) return MALFORMED;
    // Kimi reports usage within the choice.
    const usage = usageDeltas(chunk.usage ?? choice.usage);
    const deltas =
      finishes || usage.length > 0
        ? [...said, ...(finishes ? [{ kind: 'finish', reason } as const] : []), ...usage]
        : said;
    return { kind: 'answer', payload: data, chunk, deltas, role: this.hasRole(choice), manyChoices };
  }
}

function usageDeltas(usage: unknown): readonly Delta[] {
  if (!isObject(usage) || typeof usage.completion_tokens !== 'number') return NO_DELTAS;
  const { prompt_tokens, completion_tokens } = usage;
  const prompt = typeof prompt_tokens === 'number' ? prompt_tokens : 0;
  const total = typeof usage.total_tokens === 'number' ? usage.total_tokens : prompt + completion_tokens;
  const report: Usage = { ...usage, prompt_tokens: prompt, completion_tokens, total_tokens: total };
  return [{ kind: 'usage', usage: report }];
}

/** `delta` of a chunk's first choice. */
export function deltaOf({ choices }: ChatChunk): ChatDelta | undefined {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && isObject(choice.delta) ? choice.delta : undefined;
}
