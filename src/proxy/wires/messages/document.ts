import { isObject, parsedJson } from '../../../lib/json.ts';
import {
  append,
  type DocumentFold,
  type OpenFields,
  overlay,
  type WireDocument,
} from '../common/document.ts';
import type { MessagesPayload } from './event.ts';

/** A content block that is being put together. */
interface OpenBlock {
  readonly fields: OpenFields;
  /** The JSON of its `input`, as far as it was sent. */
  json: string;
}

/** Puts a message together, as Anthropic's own SDKs do. */
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
        // Totals of the whole message; those that do not apply are left out.
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

/** The block as it is in a message. `undefined` for half a call, which is never to look like a whole one. */
function contentOf({ fields, json }: OpenBlock): object | undefined {
  if (json === '') return fields;
  const input = parsedJson(json);
  if (input !== undefined) return { ...fields, input };
  // A client must not carry out what the provider does itself.
  return fields.type === 'tool_use' ? undefined : fields;
}

/** Documents of `/v1/messages`. */
export const messagesDocument: WireDocument = {
  streamFields: () => ({ stream: true }),
  fold: () => new MessageFold(),
  isAnswer: ({ type, content }) => type === 'message' && Array.isArray(content),
};
