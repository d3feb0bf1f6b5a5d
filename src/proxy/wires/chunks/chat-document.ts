import { isObject } from '../../../lib/json.ts';
import { parses } from '../../../plans/tool-proof.ts';
import { goOn, type OpenFields, overlay } from '../common/document.ts';
import type { ChatChoice, ChatDelta, ChatToolCall } from './chat-chunk.ts';
import { type ChoiceFold, chunkDocument, isFinished } from './chunk-document.ts';

class ChatChoiceFold implements ChoiceFold {
  extra_characters = 0;
  readonly #content = new ContentFold();
  /** By `index`. */
  readonly #calls = new Map<number, OpenFields>();
  #legacyCall: OpenFields | undefined;
  /** What else is in the deltas. */
  readonly #message: OpenFields = {};
  /** What else is in the choice. */
  readonly #fields: OpenFields = {};

  add({ delta, ...fields }: ChatChoice): void {
    this.extra_characters += overlay(this.#fields, fields);
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
      goOn(this.#legacyCall, function_call);
    }
    this.extra_characters += goOn(this.#message, more);
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
        goOn(known, said);
      }
    }
  }
}

/** Half a call is never to look like a whole one. */
const isWhole = ({ function: called }: OpenFields): boolean =>
  !isObject(called) || called.arguments === undefined || parses(String(called.arguments));

/** Puts the content of a message together: a text, or a list of parts where deltas bring parts (Mistral). */
class ContentFold {
  #text = '';
  #parts: OpenFields[] | undefined;

  /** `content` of a delta. */
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
    if (type === 'thinking' && Array.isArray(said.thinking)) goOnThinking(part, said.thinking);
    else goOn(part, said);
  }
}

/** A thought is a list of texts, of which pieces come one by one. */
function goOnThinking(known: OpenFields, thinking: readonly unknown[]): void {
  const thoughts = Array.isArray(known.thinking) ? (known.thinking as unknown[]) : [];
  known.thinking = thoughts;
  for (const thought of thinking) {
    const last = thoughts.at(-1);
    if (isObject(last) && isObject(thought) && last.type === 'text' && thought.type === 'text')
      goOn(last, { text: thought.text });
    else thoughts.push(isObject(thought) ? { ...thought } : thought);
  }
}

/** Documents of `/v1/chat/completions`. */
export const chatDocument = chunkDocument('chat.completion', 'message', () => new ChatChoiceFold());
