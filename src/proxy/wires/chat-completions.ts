import type { EventSourceMessage } from 'eventsource-parser';
import { failureStatusOf } from '../../interrupts/finish-reason.ts';
import { providerErrorIn } from '../../interrupts/provider-error.ts';
import type { Delta, Usage } from '../../plans/delta.ts';
import { type ChatChoice, type ChatChunk, type ChatDelta, isObject } from './chat-chunk.ts';
import { ChatToolCalls } from './chat-tool-calls.ts';
import { ChunkMould } from './chunk-mould.ts';
import type { AnswerEvent, WireEvent, WireReader } from './wire.ts';

/** A chunk of the answer. */
export interface ChunkEvent extends AnswerEvent {
  /** As it came, on one line. */
  readonly payload: string;
  readonly chunk: ChatChunk;
  /** `chunk` is that of an earlier event, which differs from this one in its text alone. */
  readonly moulded?: true;
  /** The chunk brings a role. */
  readonly role: boolean;
}

export type ChatEvent = WireEvent<ChunkEvent>;

const NO_DELTAS: readonly Delta[] = [];
/** Some providers send padding or a clock with every chunk, and no mould fits twice. */
const USELESS_MOULDS_MAX = 4;

/** Where providers put the model's thinking. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/** Reads the events of one attempt on `/v1/chat/completions`. */
export class ChatCompletionsReader implements WireReader<ChunkEvent> {
  readonly #toolCalls: ChatToolCalls;
  #mould: ChunkMould | undefined;
  #mouldIsUsed: boolean = true;
  #uselessMoulds = 0;

  constructor(nextCall: () => number) {
    this.#toolCalls = new ChatToolCalls(nextCall);
  }

  read(event: EventSourceMessage): ChatEvent {
    // Line breaks inside a JSON document are white space, and clients take only one line per event.
    const data = event.data.includes('\n') ? event.data.replaceAll('\n', ' ') : event.data;
    const text = event.event === undefined ? this.#mould?.read(data) : undefined;
    if (text !== undefined && this.#mould) {
      this.#mouldIsUsed = true;
      return {
        kind: 'answer',
        payload: data,
        chunk: this.#mould.chunk,
        moulded: true,
        deltas: text === '' ? NO_DELTAS : [{ kind: 'text', text }],
        role: false,
        manyChoices: false,
      };
    }
    if (data.length < 10 && data.trim() === '[DONE]') return { kind: 'done' };
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch {
      return event.event === 'error'
        ? { kind: 'error_event', error: { words: [], message: data } }
        : { kind: 'malformed' };
    }
    if (!isObject(chunk)) {
      const error = providerErrorIn(chunk);
      return error ? { kind: 'error_event', error } : { kind: 'malformed' };
    }
    return this.#readChunk(chunk, data, event.event);
  }

  #readChunk(chunk: ChatChunk, data: string, event: string | undefined): ChatEvent {
    const choices = chunk.choices;
    if (chunk.error || !Array.isArray(choices) || event === 'error') {
      // Looked at before the choices: an error and a finish reason may come in one event.
      const error = providerErrorIn(chunk) ?? (event === 'error' ? { words: [], message: data } : undefined);
      if (error) return { kind: 'error_event', error };
    }
    if (!Array.isArray(choices) || choices.length === 0) {
      // Pings, prompt filters, the usage report: nothing of the answer, yet the client's own provider would send it.
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
    if (!isObject(choice)) return { kind: 'malformed' };
    const manyChoices = choices.length > 1 || (choice.index ?? 0) !== 0;
    const reason = choice.finish_reason;
    if (typeof reason === 'string') {
      const status = failureStatusOf(reason);
      if (status !== undefined) return { kind: 'bad_finish', reason, status };
    }
    const role = isObject(choice.delta) && choice.delta.role !== undefined;
    const finishes = typeof reason === 'string' && reason !== '';
    const saysMore = finishes || role || manyChoices || Boolean(chunk.usage) || Boolean(chunk.error);
    if (!saysMore && isObject(choice.delta) && isOnlyText(choice.delta)) this.#makeMould(data, chunk);
    return {
      kind: 'answer',
      payload: data,
      chunk,
      deltas: this.#deltas(choice, chunk.usage),
      role,
      manyChoices,
    };
  }

  /** Nearly every event of a stream has text and nothing else. */
  #makeMould(data: string, chunk: ChatChunk): void {
    if (!this.#mouldIsUsed) this.#uselessMoulds++;
    this.#mould = this.#uselessMoulds < USELESS_MOULDS_MAX ? ChunkMould.of(data, chunk) : undefined;
    this.#mouldIsUsed = false;
  }

  #deltas(choice: ChatChoice, usage: unknown): readonly Delta[] {
    const delta = choice.delta;
    const reason = choice.finish_reason;
    const finishes = typeof reason === 'string' && reason !== '';
    const deltas: Delta[] = [];
    if (isObject(delta)) this.#readDelta(delta, deltas);
    if (finishes) deltas.push({ kind: 'finish', reason });
    deltas.push(...usageDeltas(usage));
    return deltas;
  }

  #readDelta(delta: ChatDelta, deltas: Delta[]): void {
    const field = REASONING_FIELDS.find((name) => typeof delta[name] === 'string' && delta[name] !== '');
    if (field) deltas.push({ kind: 'reasoning', text: delta[field] as string });
    readContent(delta.content, deltas);
    if (typeof delta.refusal === 'string' && delta.refusal !== '')
      deltas.push({ kind: 'refusal', text: delta.refusal });
    if (Array.isArray(delta.tool_calls)) {
      for (const fragment of delta.tool_calls)
        if (isObject(fragment)) deltas.push(...this.#toolCalls.read(fragment));
    }
    if (isObject(delta.function_call)) deltas.push(...this.#toolCalls.readLegacy(delta.function_call));
  }
}

function isOnlyText(delta: ChatDelta): boolean {
  if (typeof delta.content !== 'string' || delta.content === '') return false;
  for (const field in delta) {
    if (field !== 'content' && delta[field] !== null && delta[field] !== '') return false;
  }
  return true;
}

/** A string, or parts (Mistral): `{type: "text", text}` and `{type: "thinking", thinking: [{type: "text", text}]}`. */
function readContent(content: unknown, deltas: Delta[]): void {
  if (typeof content === 'string') {
    if (content !== '') deltas.push({ kind: 'text', text: content });
    return;
  }
  if (!Array.isArray(content)) return;
  for (const part of content) {
    if (!isObject(part)) continue;
    if (typeof part.text === 'string' && part.text !== '') deltas.push({ kind: 'text', text: part.text });
    if (Array.isArray(part.thinking)) {
      for (const thought of part.thinking) {
        if (isObject(thought) && typeof thought.text === 'string' && thought.text !== '') {
          deltas.push({ kind: 'reasoning', text: thought.text });
        }
      }
    }
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
