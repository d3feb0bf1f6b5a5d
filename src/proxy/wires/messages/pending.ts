import type { MessagesEvent, SourceBlock } from './event.ts';

/** What is held back at most: what is longer is shown as it comes. */
const CHARACTERS_MAX = 1024 * 1024;

/**
 * Events that are not to be shown before something is said: the beginning of the message and of blocks, pings. Blocks of
 * which half is of no use, and cannot be taken back, are held until they are whole: the use of a tool that the provider
 * runs, its result, and thinking in the middle of an answer, which is refused without its signature.
 */
export class PendingEvents {
  #events: MessagesEvent[] = [];
  #characters = 0;
  #held = new Set<SourceBlock>();

  get isEmpty(): boolean {
    return this.#events.length === 0;
  }

  /** Something besides thinking waits. */
  get answers(): boolean {
    return Array.from(this.#held).some(({ type }) => !isThinking(type));
  }

  /** UTF-16 units of reasoning that wait. */
  get reasoning(): number {
    const deltas = this.#events.flatMap((event) => event.deltas);
    return deltas.reduce((sum, delta) => sum + (delta.kind === 'reasoning' ? delta.text.length : 0), 0);
  }

  /** The message has begun, or the event is of a block that waits. */
  has({ type, block, ping }: MessagesEvent): boolean {
    if (block) return this.#events.some((event) => event.block === block);
    return this.#events.some((event) => event.type === type && event.ping === ping);
  }

  /** The block waits until it is whole, or did. */
  isHeld(block: SourceBlock): boolean {
    return this.#held.has(block);
  }

  /** True if what waits is to be shown now. `isLate`: what would be shown of it at once must wait until it is whole. */
  add(event: MessagesEvent, isLate: boolean): boolean {
    const { type, block, payload } = event;
    this.#events.push(event);
    this.#characters += payload.length;
    if (block && type === 'content_block_start' && (isLate || block.kind === 'sealed')) this.#held.add(block);
    if (this.#characters > CHARACTERS_MAX) return true;
    if (!block || !this.#held.has(block)) return false;
    return type === 'content_block_stop' || this.#isOverdue;
  }

  /** What may be shown, in order. `half`: with what is not whole. */
  drain(half: boolean): readonly MessagesEvent[] {
    const events = this.#events;
    const ended = new Set(
      events.filter(({ type }) => type === 'content_block_stop').map(({ block }) => block),
    );
    const ready = events.filter(
      ({ block }) => half || !block || !this.#held.has(block) || ended.has(block) || this.#isOverdue,
    );
    const taken = new Set(ready);
    this.#events = events.filter((event) => !taken.has(event));
    this.#characters = this.#events.reduce((sum, { payload }) => sum + payload.length, 0);
    return ready;
  }

  forget(): void {
    this.#events = [];
    this.#characters = 0;
    this.#held.clear();
  }

  get #isOverdue(): boolean {
    return this.#characters > CHARACTERS_MAX;
  }
}

const isThinking = (type: string): boolean => type === 'thinking' || type === 'redacted_thinking';
