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
/** Some providers add padding or a timestamp to every chunk, so no template matches twice. */
const USELESS_TEMPLATES_MAX = 4;

/** The fields in which providers send reasoning. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/** Reads the events of one attempt on `/v1/chat/completions`. */
export class ChatCompletionsReader extends ChunkReader {
  readonly #nextCall: () => number;
  /** Undefined before the first call. */
  #toolCalls: ChatToolCalls | undefined;
  #template: Template | undefined;
  #templateIsUsed: boolean = true;
  #uselessTemplates = 0;

  /** `nextCall` assigns the run's indices for calls. */
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
    // Some servers send an empty role in every delta.
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

  /** Nearly every event of a stream contains only text. */
  #makeTemplate(data: string, chunk: ChatChunk): void {
    if (!this.#templateIsUsed) this.#uselessTemplates++;
    this.#template = this.#uselessTemplates < USELESS_TEMPLATES_MAX ? templateOf(data, chunk) : undefined;
    this.#templateIsUsed = false;
  }

  /** False if part of the answer is unreadable. */
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
 * Reads a string, or a list of parts (Mistral): `{type: "text", text}` and `{type: "thinking", thinking: [{type:
 * "text", text}]}`. False for anything else.
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
 * The chunks of an answer differ only in their text, so the rest is parsed once and then compared. Parsing every chunk
 * costs 1.5 µs of CPU, and most of the garbage per event.
 */
interface Template {
  /** The parsed chunk; all matching ones are equal except for `content`. */
  readonly chunk: ChatChunk;
  /** The raw data around the text. */
  readonly before: string;
  readonly after: string;
}

const TEXT_FIELD = /"content"\s*:\s*("(?:[^"\\]|\\.)*")/;

/** `chunk`: the parsed `data`, which has text. Undefined if the position of the text in `data` is uncertain. */
export function templateOf(data: string, chunk: ChatChunk): Template | undefined {
  const match = TEXT_FIELD.exec(data);
  if (!match?.[1]) return undefined;
  const end = match.index + match[0].length;
  const before = data.slice(0, end - match[1].length);
  const after = data.slice(end);
  // Other fields may have the same name, and the last duplicate counts, so insert another text to check.
  const other = `${deltaOf(chunk)?.content}.`;
  const probe = JSON.parse(before + JSON.stringify(other) + after) as ChatChunk;
  return deltaOf(probe)?.content === other ? { chunk, before, after } : undefined;
}

/** The text of a matching event; undefined if it doesn't match. */
function textIn(data: string, { before, after }: Template): string | undefined {
  const start = before.length;
  const end = data.length - after.length;
  // Slices, because `startsWith` and `endsWith` take longer than the parsing they would save.
  if (data.slice(0, start) !== before || data.slice(end) !== after) return undefined;
  try {
    // Only a single JSON string proves a match.
    const text: unknown = JSON.parse(data.slice(start, end));
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}
