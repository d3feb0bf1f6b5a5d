import type { EventSourceMessage } from 'eventsource-parser';
import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { dataOf, isUnreadableText } from '../common/event-data.ts';
import type { ChatChoice, ChatChunk, ChatDelta } from './chat-chunk.ts';
import { ChatToolCalls } from './chat-tool-calls.ts';
import { type ChunkEvent, ChunkReader, type ChunkReading } from './chunk-reader.ts';
import { ChunkTemplate } from './chunk-template.ts';

const NO_DELTAS: readonly Delta[] = [];
/** Some providers send padding or a clock with every chunk, and no mould fits twice. */
const USELESS_MOULDS_MAX = 4;

/** Where providers put the model's thinking. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/** Reads the events of one attempt on `/v1/chat/completions`. */
export class ChatCompletionsReader extends ChunkReader {
  readonly #toolCalls: ChatToolCalls;
  #mould: ChunkTemplate | undefined;
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

  protected override said({ delta }: ChatChoice): readonly Delta[] | undefined {
    if (delta === undefined || delta === null) return NO_DELTAS;
    const deltas: Delta[] = [];
    return isObject(delta) && this.#readDelta(delta, deltas) ? deltas : undefined;
  }

  /** Nearly every event of a stream has text and nothing else. */
  #makeMould(data: string, chunk: ChatChunk): void {
    if (!this.#mouldIsUsed) this.#uselessMoulds++;
    this.#mould = this.#uselessMoulds < USELESS_MOULDS_MAX ? ChunkTemplate.of(data, chunk) : undefined;
    this.#mouldIsUsed = false;
  }

  /** False where a part of the answer is in a form that cannot be read. */
  #readDelta(delta: ChatDelta, deltas: Delta[]): boolean {
    const { content, refusal, tool_calls, function_call } = delta;
    const field = REASONING_FIELDS.find((name) => typeof delta[name] === 'string' && delta[name] !== '');
    if (field) deltas.push({ kind: 'reasoning', text: delta[field] as string });
    if (!readContent(content, deltas) || isUnreadableText(refusal)) return false;
    if (typeof refusal === 'string' && refusal !== '') deltas.push({ kind: 'refusal', text: refusal });
    if (Array.isArray(tool_calls)) {
      for (const fragment of tool_calls) {
        const said = isObject(fragment) ? this.#toolCalls.read(fragment) : undefined;
        if (said) deltas.push(...said);
        else if (!isEmpty(fragment)) return false;
      }
    } else if (tool_calls !== undefined && !isEmpty(tool_calls)) return false;
    if (!isObject(function_call)) return !isUnreadableText(function_call);
    const said = this.#toolCalls.readLegacy(function_call);
    if (said) deltas.push(...said);
    return said !== undefined;
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

/**
 * A string, or parts (Mistral): `{type: "text", text}` and `{type: "thinking", thinking: [{type: "text", text}]}`.
 * False for what is neither.
 */
function readContent(content: unknown, deltas: Delta[]): boolean {
  if (typeof content === 'string') {
    if (content !== '') deltas.push({ kind: 'text', text: content });
    return true;
  }
  if (!Array.isArray(content)) return !isUnreadableText(content);
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
  return true;
}
