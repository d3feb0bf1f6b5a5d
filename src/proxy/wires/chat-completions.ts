import type { EventSourceMessage } from 'eventsource-parser';
import { isObject } from '../../json.ts';
import type { Delta } from '../../plans/delta.ts';
import type { ChatChoice, ChatChunk, ChatDelta } from './chat-chunk.ts';
import { ChatToolCalls } from './chat-tool-calls.ts';
import { ChunkMould } from './chunk-mould.ts';
import { type ChunkEvent, ChunkReader, type ChunkReading, dataOf } from './chunk-reader.ts';

const NO_DELTAS: readonly Delta[] = [];
/** Some providers send padding or a clock with every chunk, and no mould fits twice. */
const USELESS_MOULDS_MAX = 4;

/** Where providers put the model's thinking. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/** Reads the events of one attempt on `/v1/chat/completions`. */
export class ChatCompletionsReader extends ChunkReader {
  readonly #toolCalls: ChatToolCalls;
  #mould: ChunkMould | undefined;
  #mouldIsUsed: boolean = true;
  #uselessMoulds = 0;

  constructor(nextCall: () => number) {
    super();
    this.#toolCalls = new ChatToolCalls(nextCall);
  }

  override read(message: EventSourceMessage): ChunkReading {
    const data = dataOf(message);
    const text = message.event === undefined ? this.#mould?.read(data) : undefined;
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
    const event = this.readData(data, message.event);
    if (event.kind === 'answer' && saysOnlyText(event)) this.#makeMould(data, event.chunk);
    return event;
  }

  protected override hasRole({ delta }: ChatChoice): boolean {
    // Some servers have the field in every delta, and nothing in it.
    return isObject(delta) && typeof delta.role === 'string' && delta.role !== '';
  }

  protected override said({ delta }: ChatChoice): readonly Delta[] {
    const deltas: Delta[] = [];
    if (isObject(delta)) this.#readDelta(delta, deltas);
    return deltas;
  }

  /** Nearly every event of a stream has text and nothing else. */
  #makeMould(data: string, chunk: ChatChunk): void {
    if (!this.#mouldIsUsed) this.#uselessMoulds++;
    this.#mould = this.#uselessMoulds < USELESS_MOULDS_MAX ? ChunkMould.of(data, chunk) : undefined;
    this.#mouldIsUsed = false;
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

function saysOnlyText({ deltas, chunk, role, manyChoices }: ChunkEvent): boolean {
  if (deltas.length !== 1 || deltas[0]?.kind !== 'text' || role || manyChoices || chunk.error) return false;
  const [{ delta }] = chunk.choices as [ChatChoice];
  return isObject(delta) && isOnlyText(delta);
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
