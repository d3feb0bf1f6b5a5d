/** The middle one and the longest of some durations, rounded to a tenth of a millisecond. */
export function latencies(durations_ms: readonly number[]): {
  readonly p50_ms: number;
  readonly max_ms: number;
} {
  const sorted = [...durations_ms].sort((one, other) => one - other);
  return { p50_ms: rounded_ms(sorted[sorted.length >> 1] ?? 0), max_ms: rounded_ms(sorted.at(-1) ?? 0) };
}

export const rounded_ms = (duration_ms: number): number => Math.round(duration_ms * 10) / 10;
