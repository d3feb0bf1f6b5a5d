import { getHeapStatistics } from 'node:v8';
import { apiError } from './errors.ts';

/** The rest is for what is not counted: code, connections, buffers, and garbage that has not been collected yet. */
const SHARE_OF_MEMORY = 0.5;

/** Half of what V8 may use for objects, or of what the process may use at all, where that is less. */
export function defaultMemoryBytes(): number {
  const constrained = process.constrainedMemory();
  const process_bytes = constrained > 0 ? constrained : Number.POSITIVE_INFINITY;
  return Math.floor(SHARE_OF_MEMORY * Math.min(getHeapStatistics().heap_size_limit, process_bytes));
}

/**
 * What the requests and answers of a process hold in memory, by estimate, and how much it may be. Beyond it new work is
 * refused, so that the work under way can be brought to its end.
 */
export class MemoryBudget {
  readonly limit_bytes: number;
  readonly #onRefused: () => void;
  readonly #answers = new Set<AnswerMemory>();
  #held_bytes = 0;

  constructor(limit_bytes = Number.POSITIVE_INFINITY, onRefused: () => void = () => {}) {
    this.limit_bytes = limit_bytes;
    this.#onRefused = onRefused;
  }

  get held_bytes(): number {
    return this.#held_bytes;
  }

  /** Throws `memory_exhausted` where that much is not left. */
  require(bytes: number): void {
    if (this.fits(bytes)) return;
    this.#onRefused();
    throw apiError('memory_exhausted', { limit_bytes: this.limit_bytes });
  }

  /** For one request, which holds nothing yet. */
  share(): MemoryShare {
    return new MemoryShare(this, () => {});
  }

  /** For an answer that is delivered, produced here or elsewhere; it holds `bytes` besides what is said. Throws `memory_exhausted`. */
  answer(bytes: number): AnswerMemory {
    this.require(bytes);
    const answer = new AnswerMemory(this, () => this.#answers.delete(answer));
    this.#answers.add(answer);
    answer.take(bytes);
    return answer;
  }

  fits(bytes: number): boolean {
    return this.#held_bytes + bytes <= this.limit_bytes;
  }

  /**
   * Whether an answer of this size may grow although nothing is left. Those under way are brought to their end; together
   * they take half as much again at most.
   */
  isEqualPart(bytes: number): boolean {
    return bytes <= this.limit_bytes / 2 / this.#answers.size;
  }

  /** Negative where something is given back. */
  add(bytes: number): void {
    this.#held_bytes += bytes;
  }

  refused(): void {
    this.#onRefused();
  }
}

/** What one request holds: nothing any more once it was {@link release}d as often as it was {@link hold held}. */
export class MemoryShare {
  protected readonly budget: MemoryBudget;
  readonly #onReleased: () => void;
  #bytes = 0;
  #holders = 1;

  constructor(budget: MemoryBudget, onReleased: () => void) {
    this.budget = budget;
    this.#onReleased = onReleased;
  }

  /** Throws `memory_exhausted` where that much is not left. */
  take(bytes: number): void {
    this.budget.require(bytes);
    this.count(bytes);
  }

  /** Another one holds it, besides its maker. */
  hold(): void {
    if (this.#holders++ === 0) this.budget.add(this.#bytes);
  }

  release(): void {
    if (--this.#holders > 0) return;
    this.budget.add(-this.#bytes);
    this.#onReleased();
  }

  protected count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#holders > 0) this.budget.add(bytes);
  }
}

/** What is said is counted in steps of an eighth, and of this at least. */
const STEP_BYTES_MIN = 65_536;

/** What the delivery of one answer holds. */
export class AnswerMemory extends MemoryShare {
  /** Of what is said, the part that is counted. The first step is among what every answer holds. */
  said_bytes = STEP_BYTES_MIN;

  /**
   * Counts what was said, where that is more than {@link said_bytes}. False where nothing is left and this answer is
   * larger than others may be: then it is to end.
   */
  grow(said_bytes: number): boolean {
    const step = Math.max(STEP_BYTES_MIN, said_bytes / 8);
    const more = Math.ceil(said_bytes + step) - this.said_bytes;
    if (!this.budget.fits(more) && !this.budget.isEqualPart(said_bytes)) {
      this.budget.refused();
      return false;
    }
    this.said_bytes += more;
    this.count(more);
    return true;
  }
}
