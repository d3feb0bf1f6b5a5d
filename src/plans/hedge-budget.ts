/** Hedges that can accumulate, because many targets may go silent at once. */
const SAVED_MAX = 10;

/**
 * Limits the extra requests made by hedging. Any N requests allow at most `max_share` × N hedges plus at most 10 that
 * were saved up; the first is available immediately.
 */
export class HedgeBudget {
  /** Requests needed to earn one hedge. */
  readonly #price: number;
  /** Requests not yet spent on a hedge. */
  #saved: number;

  /** `max_share`: in (0, 1]. */
  constructor(max_share: number) {
    this.#price = 1 / max_share;
    this.#saved = this.#price;
  }

  /** Counts a request from a client. */
  earn(): void {
    this.#saved = Math.min(SAVED_MAX * this.#price, this.#saved + 1);
  }

  /** Takes one hedge. Returns false if none is left. */
  spend(): boolean {
    if (this.#saved < this.#price) return false;
    this.#saved -= this.#price;
    return true;
  }
}
