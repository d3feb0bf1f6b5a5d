import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { apiError } from './errors.ts';

/** The rest is for what is not counted: code, connections, buffers, and garbage that has not been collected yet. */
const SHARE_OF_MEMORY = 0.5;

/**
 * Half of what V8 may use for objects, or of what the process may use at all, where that is less. `processes`: how many of its
 * kind share what there is.
 */
export function defaultMemoryBytes(processes: number): number {
  const constrained = process.constrainedMemory();
  const machine_bytes = Math.min(totalmem(), constrained > 0 ? constrained : Number.POSITIVE_INFINITY);
  return Math.floor(
    SHARE_OF_MEMORY * Math.min(getHeapStatistics().heap_size_limit, machine_bytes / processes),
  );
}

/**
 * What the requests and answers of a process hold in memory, by estimate, and how much it may be. Beyond it new work is
 * refused, so that the work under way can be brought to its end.
 */
export class MemoryBudget {
  /** A lower limit takes nothing from the work under way. */
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

  /** Throws `memory_exhausted` where that much is not left. */
  require(bytes: number): void {
    if (this.fits(bytes)) return;
    this.#onRefused();
    throw apiError('memory_exhausted', { limit_bytes: this.limit_bytes });
  }

  /** For one request, which holds nothing yet. */
  share(): MemoryShare {
    return new MemoryShare(this);
  }

  fits(bytes: number): boolean {
    return this.#held_bytes + bytes <= this.limit_bytes;
  }

  /**
   * Whether an answer of this size may grow although nothing is left. Those under way are brought to their end; together
   * they take half as much again at most.
   */
  isEqualPart(bytes: number): boolean {
    return bytes <= this.limit_bytes / 2 / this.#answers;
  }

  /** `answers`: how many of them that is. Both are negative where something is given back. */
  add(bytes: number, answers: 0 | 1 | -1 = 0): void {
    this.#held_bytes += bytes;
    this.#answers += answers;
  }

  refused(): void {
    this.#onRefused();
  }
}

/**
 * What is said is counted in steps of an eighth, within these bounds. What was said since the last one is in many small
 * pieces, of which a collection looks at each.
 */
const STEP_BYTES_MIN = 65_536;
const STEP_BYTES_MAX = 524_288;

/**
 * What one request holds, and the answer to it: nothing any more once it was {@link release}d as often as it was
 * {@link hold held}.
 */
export class MemoryShare {
  /** Of what the answer says, the part that is counted. The first step is among what every answer holds. */
  said_bytes = STEP_BYTES_MIN;
  readonly #budget: MemoryBudget;
  #bytes = 0;
  #holders = 1;
  #answers: 0 | 1 = 0;

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  /** Throws `memory_exhausted` where that much is not left. */
  take(bytes: number): void {
    this.#budget.require(bytes);
    this.#count(bytes);
  }

  /** Gives back all of it. */
  drop(): void {
    this.#count(-this.#bytes);
  }

  /** From now on it holds an answer that is delivered, and `bytes` for it besides what is said. Throws `memory_exhausted`. */
  beginAnswer(bytes: number): void {
    this.take(bytes);
    if (this.#holders > 0) this.#budget.add(0, this.#answers === 0 ? 1 : 0);
    this.#answers = 1;
  }

  /**
   * Counts what was said, where that is more than {@link said_bytes}. False where nothing is left and this answer is
   * larger than others may be: then it is to end.
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

  /** Another one holds it, besides its maker. */
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
