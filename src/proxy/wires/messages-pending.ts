import type { MessagesEvent, SourceBlock } from './messages-event.ts';

/** What is held back at most: what is longer is shown as it comes. */
const CHARACTERS_MAX = 1024 * 1024;

/**
 * Events that are not to be shown before something is said: the beginning of the message and of blocks, pings. Blocks of
 * which half is of no use, and cannot be taken back, are held until they are whole: tools that the provider runs, whose
 * use is of no use without the result, and thinking in the middle of an answer, which is refused without its signature.
 */
export class PendingEvents {
  readonly #isLive: boolean;
  #events: MessagesEvent[] = [];
  #characters = 0;
  #held = new Set<SourceBlock>();

  /** `isLive`: tools are shown while they come. */
  constructor(isLive: boolean) {
    this.#isLive = isLive;
  }

  get isEmpty(): boolean {
    return this.#events.length === 0;
  }

  /** Something besides thinking waits. */
  get answers(): boolean {
    return Array.from(this.#held).some(({ type }) => !isThinking(type));
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
    const isWhole = type === 'content_block_stop' && !isUse(block.type);
    return isWhole || this.#isOverdue(block);
  }

  /** What may be shown, in order. `half`: with what is not whole. */
  take(half: boolean): readonly MessagesEvent[] {
    const events = this.#events;
    const ended = new Set(
      events.filter(({ type }) => type === 'content_block_stop').map(({ block }) => block),
    );
    const ready = events.filter(
      ({ block }) => half || !block || !this.#held.has(block) || ended.has(block) || this.#isOverdue(block),
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

  #isOverdue({ type }: SourceBlock): boolean {
    return this.#characters > CHARACTERS_MAX || (this.#isLive && !isThinking(type));
  }
}

const isThinking = (type: string): boolean => type === 'thinking' || type === 'redacted_thinking';

/** A tool that the provider runs: without its result it is refused when the message is sent back. */
const isUse = (type: string): boolean => type.endsWith('_tool_use');
