import { isObject, parsedJson } from '../../../lib/json.ts';
import {
  append,
  type DocumentFold,
  type OpenFields,
  overlay,
  type WireDocument,
} from '../common/document.ts';
import type { MessagesPayload } from './event.ts';

/** An unfinished content block. */
interface OpenBlock {
  readonly fields: OpenFields;
  /** The JSON of its `input` received so far. */
  json: string;
}

/** Assembles a message like Anthropic's own SDKs. */
class MessageFold implements DocumentFold {
  extra_bytes = 0;
  #message: OpenFields | undefined;
  readonly #usage: OpenFields = {};
  /** By `index`. */
  readonly #blocks = new Map<unknown, OpenBlock>();

  add(payload: string): void {
    const { type, index, message, content_block, delta, usage, ...more } = JSON.parse(
      payload,
    ) as MessagesPayload;
    switch (type) {
      case 'message_start':
        if (isObject(message)) this.#begin(message);
        return;
      case 'content_block_start':
        if (isObject(content_block)) this.#blocks.set(index, this.#opened(content_block));
        return;
      case 'content_block_delta': {
        const block = this.#blocks.get(index);
        if (block && isObject(delta)) this.#say(block, delta);
        return;
      }
      case 'message_delta':
        // Totals for the whole message, without the ones that don't apply.
        if (isObject(usage)) overlay(this.#usage, usage);
        if (this.#message) this.#conclude(this.#message, { ...more, ...(delta as object | null) });
    }
  }

  document(): object | undefined {
    const content = [...this.#blocks.values()].map(contentOf);
    if (typeof this.#message?.stop_reason !== 'string') return undefined;
    if (content.some((block) => block === undefined)) return undefined;
    return { ...this.#message, content, usage: this.#usage };
  }

  #begin({ usage, ...message }: Readonly<Record<string, unknown>>): void {
    this.#message = { ...message };
    if (isObject(usage)) overlay(this.#usage, usage);
  }

  #conclude(message: OpenFields, fields: Readonly<Record<string, unknown>>): void {
    for (const [name, value] of Object.entries(fields)) message[name] = value;
  }

  #opened(block: Readonly<Record<string, unknown>>): OpenBlock {
    const fields: OpenFields = {};
    this.extra_bytes += append(fields, block);
    return { fields, json: '' };
  }

  #say(block: OpenBlock, { type, ...said }: Readonly<Record<string, unknown>>): void {
    const { fields } = block;
    switch (type) {
      case 'input_json_delta':
        if (typeof said.partial_json === 'string') block.json += said.partial_json;
        return;
      case 'signature_delta':
        overlay(fields, said);
        return;
      case 'citations_delta':
        this.extra_bytes += append(fields, { citations: [said.citation] });
        return;
      case 'text_delta':
      case 'thinking_delta':
        append(fields, said);
        return;
      default:
        this.extra_bytes += append(fields, said);
    }
  }
}

/** The finished block. `undefined` for an incomplete call, which must never look complete. */
function contentOf({ fields, json }: OpenBlock): object | undefined {
  if (json === '') return fields;
  const input = parsedJson(json);
  if (input !== undefined) return { ...fields, input };
  // Clients don't execute provider tools, so their input may be incomplete.
  return fields.type === 'tool_use' ? undefined : fields;
}

/** The documents of `/v1/messages`. */
export const messagesDocument: WireDocument = {
  streamFields: () => ({ stream: true }),
  fold: () => new MessageFold(),
  isAnswer: ({ type, content }) => type === 'message' && Array.isArray(content),
};
