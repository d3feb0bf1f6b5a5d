import { isObject } from '../../../lib/json.ts';
import { type MessagesPayload, typeOf } from './event.ts';
import { noteUse, type ProviderUses } from './provider-tools.ts';

/** A content block as the client has it. */
export interface ShownBlock {
  readonly index: number;
  /** `type` of the block. */
  readonly type: string;
  /** Of a call: what was sent of its arguments. */
  arguments: string;
  /** Thinking that was signed. */
  isSigned: boolean;
}

/** Where an answer stands, by the events that its client got. */
export class ShownBlocks {
  /** `message_start` as it was sent, once it was. */
  start: MessagesPayload | undefined;
  /** There is something besides thinking. */
  answers = false;
  readonly #open = new Map<number, ShownBlock>();
  /** Indexes of the blocks of calls, by the positions of the calls. */
  readonly #calls: number[] = [];
  /** Those that have no result. */
  readonly #uses: ProviderUses = new Map();
  #next = 0;

  /** The one that began last of those that are open. */
  get latest(): ShownBlock | undefined {
    return Array.from(this.#open.values()).at(-1);
  }

  /** The block of the call at this position, while it is open. */
  ofCall(position: number): ShownBlock | undefined {
    return this.#open.get(this.#calls[position] ?? -1);
  }

  /** The position of the call that this block is of. */
  callOf({ index }: ShownBlock): number {
    return this.#calls.indexOf(index);
  }

  /** Of tools that the provider runs. */
  get unansweredUses(): readonly Readonly<Record<string, unknown>>[] {
    return [...this.#uses.values()];
  }

  /** `start`: the block as it begins, unless it is text or thinking. */
  begin(type: string, start?: Readonly<Record<string, unknown>>): ShownBlock {
    if (start) noteUse(this.#uses, start);
    const block = { index: this.#next++, type, arguments: '', isSigned: false };
    this.#open.set(block.index, block);
    if (type === 'tool_use') this.#calls.push(block.index);
    this.answers ||= type !== 'thinking' && type !== 'redacted_thinking';
    return block;
  }

  end({ index }: ShownBlock): void {
    this.#open.delete(index);
  }

  /** Learns from an event that was sent, here or elsewhere. */
  add(payload: string): void {
    switch (typeOf(payload)) {
      case 'message_start':
        this.start = JSON.parse(payload) as MessagesPayload;
        return;
      case 'content_block_start': {
        const { content_block } = JSON.parse(payload) as MessagesPayload;
        const start = isObject(content_block) ? content_block : undefined;
        this.begin(start ? String(start.type) : '', start);
        return;
      }
      case 'content_block_stop': {
        const { index } = JSON.parse(payload) as MessagesPayload;
        this.#open.delete(Number(index));
        return;
      }
      case 'content_block_delta':
        // Nearly all are text, which changes nothing.
        if (/"(?:input_json|signature)_delta"/.test(payload))
          this.#addDelta(JSON.parse(payload) as MessagesPayload);
    }
  }

  #addDelta({ index, delta }: MessagesPayload): void {
    const block = this.#open.get(Number(index));
    if (!block || !isObject(delta)) return;
    if (typeof delta.partial_json === 'string') block.arguments += delta.partial_json;
    if (delta.type === 'signature_delta') block.isSigned = true;
  }
}
