/** Hedges that may be saved up: as many targets can go silent in one moment. */
const SAVED_MAX = 10;

/**
 * How many requests may be made beside those that the clients want. Among any N requests there are at most
 * `max_share` × N hedges, and those that were saved up before, of which there are 10 at most; the first may be made at once.
 */
export class HedgeBudget {
  /** Requests that earn one hedge. */
  readonly #price: number;
  /** Requests that no hedge was made for yet. */
  #saved: number;

  /** `max_share`: in (0, 1]. */
  constructor(max_share: number) {
    this.#price = 1 / max_share;
    this.#saved = this.#price;
  }

  /** A client has asked for an answer. */
  earn(): void {
    this.#saved = Math.min(SAVED_MAX * this.#price, this.#saved + 1);
  }

  /** False if no hedge is to be made now. */
  spend(): boolean {
    if (this.#saved < this.#price) return false;
    this.#saved -= this.#price;
    return true;
  }
}
