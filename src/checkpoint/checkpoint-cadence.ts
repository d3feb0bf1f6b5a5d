/** The store is asked by one run for at most this part of the time. */
const BUSY_PART_MAX = 1 / 4;
/** How much longer than configured a run waits at most before it is stored. */
const STRETCH_MAX = 10;
/** Weight of the latest answer in the average. */
const WEIGHT = 0.2;

/**
 * How long journals wait before they are stored: the configured interval, and longer while the store takes long to
 * answer, so that a slow store is given fewer and larger batches.
 */
export class CheckpointCadence {
  readonly #interval_ms: number;
  #latency_ms = 0;

  constructor(interval_ms: number) {
    this.#interval_ms = interval_ms;
  }

  /** How many times longer than configured a journal waits now: 1 to 10. */
  get stretch(): number {
    return Math.min(Math.max(this.#latency_ms / BUSY_PART_MAX / this.#interval_ms, 1), STRETCH_MAX);
  }

  /** Takes how long an append took. Beyond what counts, an outlier would slow everything down for long. */
  observe(latency_ms: number): void {
    const counted_ms = Math.min(latency_ms, this.#interval_ms * STRETCH_MAX * BUSY_PART_MAX);
    this.#latency_ms += WEIGHT * (counted_ms - this.#latency_ms);
  }
}
