import type { RecoveryGaps } from './snapshot.ts';

/** From an unnoticeable reconnect to a long wait for a provider. */
const LIMITS_MS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

/** How long clients waited while their answers were being recovered. */
export class RecoveryGapCounts {
  readonly #counts: number[] = Array.from({ length: LIMITS_MS.length + 1 }, () => 0);
  #sum_ms = 0;
  #max_ms = 0;

  add(gap_ms: number): void {
    const index = LIMITS_MS.findIndex((limit_ms) => gap_ms <= limit_ms);
    const bucket = index === -1 ? LIMITS_MS.length : index;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum_ms += gap_ms;
    this.#max_ms = Math.max(this.#max_ms, gap_ms);
  }

  read(): RecoveryGaps {
    return {
      count: this.#counts.reduce((sum, count) => sum + count, 0),
      sum_ms: Math.round(this.#sum_ms),
      max_ms: Math.round(this.#max_ms),
      buckets: this.#counts.map((count, index) => ({ le_ms: LIMITS_MS[index] ?? null, count })),
    };
  }
}
