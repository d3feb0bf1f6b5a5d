import type { EventSourceMessage } from 'eventsource-parser';
import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { dataOf, isUnreadableText } from '../common/event-data.ts';
import { ChatToolCalls } from './chat-tool-calls.ts';
import {
  type ChatChoice,
  type ChatChunk,
  type ChatDelta,
  type ChunkEvent,
  ChunkReader,
  type ChunkReading,
  deltaOf,
} from './chunk-reader.ts';

const NO_DELTAS: readonly Delta[] = [];
/** Some providers send padding or a clock with every chunk, and no template fits twice. */
const USELESS_TEMPLATES_MAX = 4;

/** Where providers put the model's thinking. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/** Reads the events of one attempt on `/v1/chat/completions`. */
export class ChatCompletionsReader extends ChunkReader {
  readonly #nextCall: () => number;
  /** Undefined before the first call. */
  #toolCalls: ChatToolCalls | undefined;
  #template: Template | undefined;
  #templateIsUsed: boolean = true;
  #uselessTemplates = 0;

  /** `nextCall` hands out the run's numbers for calls. */
  constructor(nextCall: () => number) {
    super();
    this.#nextCall = nextCall;
  }

  override read(message: EventSourceMessage): ChunkReading {
    const data = dataOf(message);
    const template = message.event === undefined ? this.#template : undefined;
    const text = template && textIn(data, template);
    if (template && text !== undefined) {
      this.#templateIsUsed = true;
      return {
        kind: 'answer',
        payload: data,
        chunk: template.chunk,
        fitsTemplate: true,
        deltas: text === '' ? NO_DELTAS : [{ kind: 'text', text }],
        role: false,
        manyChoices: false,
      };
    }
    const event = this.readData(data, message.event);
    if (event.kind === 'answer' && saysOnlyText(event)) this.#makeTemplate(data, event.chunk);
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

  get #calls(): ChatToolCalls {
    this.#toolCalls ??= new ChatToolCalls(this.#nextCall);
    return this.#toolCalls;
  }

  /** Nearly every event of a stream has text and nothing else. */
  #makeTemplate(data: string, chunk: ChatChunk): void {
    if (!this.#templateIsUsed) this.#uselessTemplates++;
    this.#template = this.#uselessTemplates < USELESS_TEMPLATES_MAX ? templateOf(data, chunk) : undefined;
    this.#templateIsUsed = false;
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
        const said = isObject(fragment) ? this.#calls.read(fragment) : undefined;
        if (said) deltas.push(...said);
        else if (!isEmpty(fragment)) return false;
      }
    } else if (tool_calls !== undefined && !isEmpty(tool_calls)) return false;
    if (!isObject(function_call)) return !isUnreadableText(function_call);
    const said = this.#calls.readLegacy(function_call);
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

/**
 * The chunks of an answer differ in their text alone, so what surrounds it is parsed once and from then on compared.
 * To parse every chunk costs 1.5 µs of CPU and most of the garbage that an event makes.
 */
interface Template {
  /** The chunk that was parsed: all that fit are the same but for `content`. */
  readonly chunk: ChatChunk;
  /** What surrounds the text, as it came. */
  readonly before: string;
  readonly after: string;
}

const TEXT_FIELD = /"content"\s*:\s*("(?:[^"\\]|\\.)*")/;

/** `chunk` is what `data` parses to, and has text. None if its place in `data` is not certain. */
export function templateOf(data: string, chunk: ChatChunk): Template | undefined {
  const match = TEXT_FIELD.exec(data);
  if (!match?.[1]) return undefined;
  const end = match.index + match[0].length;
  const before = data.slice(0, end - match[1].length);
  const after = data.slice(end);
  // Other fields may have that name as well, and the last one of a name counts: only another text proves it.
  const other = `${deltaOf(chunk)?.content}.`;
  const probe = JSON.parse(before + JSON.stringify(other) + after) as ChatChunk;
  return deltaOf(probe)?.content === other ? { chunk, before, after } : undefined;
}

/** The text of an event that fits, else undefined. */
function textIn(data: string, { before, after }: Template): string | undefined {
  const start = before.length;
  const end = data.length - after.length;
  // Comparing slices: `startsWith` and `endsWith` take longer than the parsing that is to be saved.
  if (data.slice(0, start) !== before || data.slice(end) !== after) return undefined;
  try {
    // One JSON string in the place of another: whatever else parses there is no text, or more than it.
    const text: unknown = JSON.parse(data.slice(start, end));
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}
