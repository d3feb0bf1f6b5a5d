import { failureStatusOf } from '../../../interrupts/provider-error.ts';
import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import { parses } from '../../../plans/tool-call.ts';
import {
  append,
  type DocumentFold,
  type OpenFields,
  overlay,
  type WireDocument,
} from '../common/document.ts';
import type { ChatChoice, ChatChunk, ChatDelta, ChatToolCall } from './chunk-reader.ts';

/** Assembles one choice of an answer. */
export interface ChoiceFold {
  readonly extra_bytes: number;
  add(choice: ChatChoice): void;
  /** The choice without its index; `undefined` if it is incomplete. */
  document(): object | undefined;
}

/**
 * Documents of a wire that streams chunks with choices. `object`: their type. `said`: the field of a choice with the
 * content.
 */
export const chunkDocument = (
  object: string,
  said: 'message' | 'text',
  choiceOf: () => ChoiceFold,
): WireDocument => ({
  streamFields({ stream_options }) {
    // Invalid options are left to the provider.
    if (!isObject(stream_options ?? {})) return undefined;
    return { stream: true, stream_options: { ...(stream_options as object | null), include_usage: true } };
  },
  fold: () => new ChunkFold(object, choiceOf),
  isAnswer: ({ choices }) => Array.isArray(choices) && choices.length > 0 && choices.every(hasEnded(said)),
});

const hasEnded =
  (said: string) =>
  (choice: unknown): boolean =>
    isObject(choice) &&
    choice[said] !== undefined &&
    !(typeof choice.finish_reason === 'string' && failureStatusOf(choice.finish_reason));

class ChunkFold implements DocumentFold {
  readonly #object: string;
  readonly #choiceOf: () => ChoiceFold;
  readonly #choices = new Map<number, ChoiceFold>();
  /** The chunks' top-level fields. */
  readonly #fields: OpenFields = {};
  #extra_bytes = 0;

  constructor(object: string, choiceOf: () => ChoiceFold) {
    this.#object = object;
    this.#choiceOf = choiceOf;
  }

  get extra_bytes(): number {
    let extra = this.#extra_bytes;
    for (const choice of this.#choices.values()) extra += choice.extra_bytes;
    return extra;
  }

  add(payload: string): void {
    if (payload === '[DONE]') return;
    const { choices, obfuscation: _, ...fields } = JSON.parse(payload) as ChatChunk;
    this.#extra_bytes += overlay(this.#fields, fields);
    if (Array.isArray(choices)) for (const choice of choices) if (isObject(choice)) this.#addChoice(choice);
  }

  document(): object | undefined {
    const places = [...this.#choices].sort(([one], [other]) => one - other);
    const choices = places.flatMap(([index, choice]) => {
      const whole = choice.document();
      return whole ? [{ index, ...whole }] : [];
    });
    if (choices.length === 0 || choices.length < places.length) return undefined;
    const { id, created, model, usage, object: _, ...more } = this.#fields;
    return { id, object: this.#object, created, model, choices, ...(isObject(usage) && { usage }), ...more };
  }

  #addChoice({ index, usage, ...choice }: ChatChoice): void {
    const place = typeof index === 'number' ? index : 0;
    const known = this.#choices.get(place) ?? this.#choiceOf();
    this.#choices.set(place, known);
    known.add(choice);
    // Kimi reports usage within the choice.
    if (isObject(usage)) overlay(this.#fields, { usage });
  }
}

/** Whether a choice with these fields has ended. */
export const isFinished = ({ finish_reason }: Fields): boolean =>
  typeof finish_reason === 'string' && finish_reason !== '';

class ChatChoiceFold implements ChoiceFold {
  extra_bytes = 0;
  readonly #content = new ContentFold();
  /** By `index`. */
  readonly #calls = new Map<number, OpenFields>();
  #legacyCall: OpenFields | undefined;
  /** The other fields of the deltas. */
  readonly #message: OpenFields = {};
  /** The other fields of the choice. */
  readonly #fields: OpenFields = {};

  add({ delta, ...fields }: ChatChoice): void {
    this.extra_bytes += overlay(this.#fields, fields);
    if (isObject(delta)) this.#addDelta(delta);
  }

  document(): object | undefined {
    const { finish_reason, ...fields } = this.#fields;
    const tool_calls = [...this.#calls].sort(([one], [other]) => one - other).map(([, call]) => call);
    if (!isFinished({ finish_reason }) || !tool_calls.every(isWhole)) return undefined;
    const { content } = this.#content;
    const saysOther = tool_calls.length > 0 || this.#legacyCall || Boolean(this.#message.refusal);
    const message = {
      role: 'assistant',
      content: content === '' && saysOther ? null : content,
      ...this.#message,
      ...(tool_calls.length > 0 && { tool_calls }),
      ...(this.#legacyCall && { function_call: this.#legacyCall }),
    };
    return { message, ...fields, finish_reason };
  }

  #addDelta({ role: _, content, tool_calls, function_call, ...more }: ChatDelta): void {
    this.#content.add(content);
    if (Array.isArray(tool_calls)) for (const call of tool_calls) if (isObject(call)) this.#addCall(call);
    if (isObject(function_call)) {
      this.#legacyCall ??= {};
      append(this.#legacyCall, function_call);
    }
    this.extra_bytes += append(this.#message, more);
  }

  #addCall({ index, ...fragment }: ChatToolCall): void {
    const place = typeof index === 'number' ? index : this.#calls.size;
    const call = this.#calls.get(place) ?? {};
    this.#calls.set(place, call);
    for (const [field, said] of Object.entries(fragment)) {
      if (!isObject(said)) overlay(call, { [field]: said });
      else {
        const known = isObject(call[field]) ? call[field] : {};
        call[field] = known;
        append(known, said);
      }
    }
  }
}

/** An incomplete call must never look complete. */
const isWhole = ({ function: called }: OpenFields): boolean =>
  !isObject(called) || called.arguments === undefined || parses(String(called.arguments));

/** Assembles the content of a message: text, or a list of parts if the deltas contain parts (Mistral). */
class ContentFold {
  #text = '';
  #parts: OpenFields[] | undefined;

  /** `content`: from a delta. */
  add(content: unknown): void {
    if (Array.isArray(content)) {
      for (const part of content) if (isObject(part)) this.#addPart(part);
    } else if (typeof content === 'string' && content !== '') {
      if (this.#parts) this.#addPart({ type: 'text', text: content });
      else this.#text += content;
    }
  }

  get content(): string | readonly object[] {
    return this.#parts ?? this.#text;
  }

  #addPart({ type, ...said }: Readonly<Record<string, unknown>>): void {
    this.#parts ??= this.#text === '' ? [] : [{ type: 'text', text: this.#text }];
    const last = this.#parts.at(-1);
    const known = last?.type === type ? last : undefined;
    const part = known ?? { type };
    if (!known) this.#parts.push(part);
    if (type === 'thinking' && Array.isArray(said.thinking)) appendThoughts(part, said.thinking);
    else append(part, said);
  }
}

/** A thought is a list of texts that arrives piece by piece. */
function appendThoughts(known: OpenFields, thinking: readonly unknown[]): void {
  const thoughts = Array.isArray(known.thinking) ? (known.thinking as unknown[]) : [];
  known.thinking = thoughts;
  for (const thought of thinking) {
    const last = thoughts.at(-1);
    if (isObject(last) && isObject(thought) && last.type === 'text' && thought.type === 'text')
      append(last, { text: thought.text });
    else thoughts.push(isObject(thought) ? { ...thought } : thought);
  }
}

/** The documents of `/v1/chat/completions`. */
export const chatDocument = chunkDocument('chat.completion', 'message', () => new ChatChoiceFold());
