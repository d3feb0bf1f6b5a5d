import { isObject } from '../../../lib/json.ts';
import { parses } from '../../../plans/tool-proof.ts';
import { goOn, type OpenFields, overlay } from '../common/document.ts';
import type { ChatChoice, ChatDelta, ChatToolCall } from './chat-chunk.ts';
import { ContentFold } from './chat-content-fold.ts';
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
    if (isObject(delta)) this.#takeDelta(delta);
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

  #takeDelta({ role: _, content, tool_calls, function_call, ...more }: ChatDelta): void {
    this.#content.add(content);
    if (Array.isArray(tool_calls)) for (const call of tool_calls) if (isObject(call)) this.#takeCall(call);
    if (isObject(function_call)) {
      this.#legacyCall ??= {};
      goOn(this.#legacyCall, function_call);
    }
    this.extra_characters += goOn(this.#message, more);
  }

  #takeCall({ index, ...fragment }: ChatToolCall): void {
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

/** Documents of `/v1/chat/completions`. */
export const chatDocument = chunkDocument('chat.completion', 'message', () => new ChatChoiceFold());
