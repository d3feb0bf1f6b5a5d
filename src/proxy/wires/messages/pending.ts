import type { MessagesEvent, SourceBlock } from './event.ts';

/** Maximum size of held events; beyond it, they are shown as they arrive. */
const CHARACTERS_MAX = 1024 * 1024;

/**
 * Events to be held until there is content: the beginning of the message and of blocks, and pings. Some blocks are
 * useless if partial and can't be withdrawn, so they are held until complete: a provider tool's use, its result, and
 * reasoning in the middle of an answer, which is refused without its signature.
 */
export class PendingEvents {
  #events: MessagesEvent[] = [];
  #characters = 0;
  #held = new Set<SourceBlock>();

  get isEmpty(): boolean {
    return this.#events.length === 0;
  }

  /** Whether something besides reasoning is held. */
  get answers(): boolean {
    return Array.from(this.#held).some(({ type }) => !isThinking(type));
  }

  /** UTF-16 units of reasoning held. */
  get reasoning(): number {
    const deltas = this.#events.flatMap((event) => event.deltas);
    return deltas.reduce((sum, delta) => sum + (delta.kind === 'reasoning' ? delta.text.length : 0), 0);
  }

  /** Whether an event of the same type, or of the same block, is held. */
  has({ type, block, ping }: MessagesEvent): boolean {
    if (block) return this.#events.some((event) => event.block === block);
    return this.#events.some((event) => event.type === type && event.ping === ping);
  }

  /** Whether the block is or was held until complete. */
  isHeld(block: SourceBlock): boolean {
    return this.#held.has(block);
  }

  /**
   * Holds an event. Returns true if held events must be shown now. `isLate`: the block must be held until it is
   * complete.
   */
  add(event: MessagesEvent, isLate: boolean): boolean {
    const { type, block, payload } = event;
    this.#events.push(event);
    this.#characters += payload.length;
    if (block && type === 'content_block_start' && (isLate || block.kind === 'sealed')) this.#held.add(block);
    if (this.#characters > CHARACTERS_MAX) return true;
    if (!block || !this.#held.has(block)) return false;
    return type === 'content_block_stop' || this.#isOverdue;
  }

  /** Releases events in order. `half`: include incomplete blocks. */
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
