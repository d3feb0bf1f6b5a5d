import { isObject } from '../../../lib/json.ts';
import { type MessagesPayload, typeOf } from './event.ts';
import { noteUse, type ProviderUses } from './provider-tools.ts';

/** A content block as the client has seen it. */
export interface ShownBlock {
  readonly index: number;
  /** The block's `type`. */
  readonly type: string;
  /** For calls: the arguments sent so far. */
  arguments: string;
  /** The block is signed reasoning. */
  isSigned: boolean;
}

/** The state of an answer, derived from the events sent to its client. */
export class ShownBlocks {
  /** `message_start` as sent; undefined before. */
  start: MessagesPayload | undefined;
  /** Whether there is content besides reasoning. */
  answers = false;
  readonly #open = new Map<number, ShownBlock>();
  /** Block indices of calls, by the calls' positions. */
  readonly #calls: number[] = [];
  /** Provider tool uses without a result. */
  readonly #uses: ProviderUses = new Map();
  #next = 0;

  /** The open block that began last. */
  get latest(): ShownBlock | undefined {
    return Array.from(this.#open.values()).at(-1);
  }

  /** The open block of the call at this position. */
  ofCall(position: number): ShownBlock | undefined {
    return this.#open.get(this.#calls[position] ?? -1);
  }

  /** The position of this block's call. */
  callOf({ index }: ShownBlock): number {
    return this.#calls.indexOf(index);
  }

  /** Provider tool uses without a result. */
  get unansweredUses(): readonly Readonly<Record<string, unknown>>[] {
    return [...this.#uses.values()];
  }

  /** `start`: the initial block; omitted for text and reasoning. */
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

  /** Updates the state with an event that was sent by any replica. */
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
        // Nearly all deltas are text, which doesn't change the state.
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
