import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { apiError } from './errors.ts';

/** The rest is for uncounted memory: code, connections, buffers and uncollected garbage. */
const SHARE_OF_MEMORY = 0.5;

/**
 * Half of V8's heap limit or of the process's memory limit, whichever is less. `processes`: how many similar processes
 * share the memory.
 */
export function defaultMemoryBytes(processes: number): number {
  const constrained = process.constrainedMemory();
  const machine_bytes = Math.min(totalmem(), constrained > 0 ? constrained : Number.POSITIVE_INFINITY);
  return Math.floor(
    SHARE_OF_MEMORY * Math.min(getHeapStatistics().heap_size_limit, machine_bytes / processes),
  );
}

/**
 * The estimated memory of a process's requests and answers, and its limit. Above the limit new work is refused, so that
 * the current work can finish.
 */
export class MemoryBudget {
  /** Lowering it doesn't affect work in progress. */
  limit_bytes: number;
  readonly #onRefused: () => void;
  #held_bytes = 0;
  #answers = 0;

  constructor(limit_bytes = Number.POSITIVE_INFINITY, onRefused: () => void = () => {}) {
    this.limit_bytes = limit_bytes;
    this.#onRefused = onRefused;
  }

  get held_bytes(): number {
    return this.#held_bytes;
  }

  /** Throws `memory_exhausted` if less than that is left. */
  require(bytes: number): void {
    if (this.fits(bytes)) return;
    this.#onRefused();
    throw apiError('memory_exhausted', { limit_bytes: this.limit_bytes });
  }

  /** The share of one request, initially empty. */
  share(): MemoryShare {
    return new MemoryShare(this);
  }

  fits(bytes: number): boolean {
    return this.#held_bytes + bytes <= this.limit_bytes;
  }

  /**
   * Whether an answer of this size may still grow once the budget is used up. Lets current answers finish with at most
   * half the limit on top.
   */
  isEqualPart(bytes: number): boolean {
    return bytes <= this.limit_bytes / 2 / this.#answers;
  }

  /** `answers`: change in the number of answers. Negative values give memory back. */
  add(bytes: number, answers: 0 | 1 | -1 = 0): void {
    this.#held_bytes += bytes;
    this.#answers += answers;
  }

  refused(): void {
    this.#onRefused();
  }
}

/**
 * Answer text is counted in steps of an eighth of its size, within these bounds: text since the last step is in many
 * small pieces, which cost the garbage collector more.
 */
const STEP_BYTES_MIN = 65_536;
const STEP_BYTES_MAX = 524_288;

/**
 * The memory of one request and its answer. Given back once {@link release} was called as often as {@link hold}, plus
 * once for the creator.
 */
export class MemoryShare {
  /** The counted part of the answer's text. The first step is included in the base amount of every answer. */
  said_bytes = STEP_BYTES_MIN;
  readonly #budget: MemoryBudget;
  #bytes = 0;
  #holders = 1;
  #answers: 0 | 1 = 0;

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  /** Throws `memory_exhausted` if less than that is left. */
  take(bytes: number): void {
    this.#budget.require(bytes);
    this.#count(bytes);
  }

  /** Gives everything back. */
  drop(): void {
    this.#count(-this.#bytes);
  }

  /** Starts an answer, which takes `bytes` besides its text. Throws `memory_exhausted`. */
  beginAnswer(bytes: number): void {
    this.take(bytes);
    if (this.#holders > 0) this.#budget.add(0, this.#answers === 0 ? 1 : 0);
    this.#answers = 1;
  }

  /**
   * Counts the answer's text, if it has grown beyond {@link said_bytes}. False if the budget is used up and this answer
   * is larger than its fair share, so that it must end.
   */
  grow(said_bytes: number): boolean {
    const step = Math.min(Math.max(STEP_BYTES_MIN, said_bytes / 8), STEP_BYTES_MAX);
    const more = Math.ceil(said_bytes + step) - this.said_bytes;
    if (!this.#budget.fits(more) && !this.#budget.isEqualPart(said_bytes)) {
      this.#budget.refused();
      return false;
    }
    this.said_bytes += more;
    this.#count(more);
    return true;
  }

  /** Adds a holder besides the creator. */
  hold(): void {
    if (this.#holders++ === 0) this.#budget.add(this.#bytes, this.#answers);
  }

  release(): void {
    if (--this.#holders === 0) this.#budget.add(-this.#bytes, this.#answers === 0 ? 0 : -1);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#holders > 0) this.#budget.add(bytes);
  }
}
