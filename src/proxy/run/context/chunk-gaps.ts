/** In seconds: the buckets that the OpenTelemetry conventions recommend for the time between chunks. */
export const CHUNK_GAP_BUCKETS = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
] as const;

/**
 * The time between the chunks of one attempt. Counted here, because observers aren't called per event
 * (docs/adr/0019-no-observer-per-event.md).
 */
export class ChunkGaps {
  /** Per bucket; the last counts gaps above all bounds. */
  readonly counts: number[] = Array(CHUNK_GAP_BUCKETS.length + 1).fill(0);
  /** In seconds. */
  sum = 0;
  #last_ms: number | undefined;

  /** Records a chunk with content at `at_ms`. */
  came(at_ms: number): void {
    const last_ms = this.#last_ms;
    this.#last_ms = at_ms;
    if (last_ms === undefined) return;
    const gap_s = (at_ms - last_ms) / 1000;
    const found = CHUNK_GAP_BUCKETS.findIndex((bound) => gap_s <= bound);
    const index = found === -1 ? CHUNK_GAP_BUCKETS.length : found;
    this.counts[index] = (this.counts[index] ?? 0) + 1;
    this.sum += gap_s;
  }
}
