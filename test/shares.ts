import { expect } from 'vitest';

/** With this many standard deviations, a correct share fails for one seed in three million. */
const DEVIATIONS = 5;

/**
 * Asserts that a property's cases reached the situations that it tests: without interruptions or recoveries, a property
 * proves nothing. `counts` is the number of `cases` in which each situation occurred; `shares` is its minimum share of
 * all cases, from 0 to 1, measured with thousands of cases. A count fails if chance doesn't explain it, so a rare
 * situation may be absent from a few hundred cases but not from a few thousand.
 */
export function expectShares(
  counts: Readonly<Record<string, number>>,
  cases: number,
  shares: Readonly<Record<string, number>>,
): void {
  for (const [situation, share] of Object.entries(shares)) {
    const message = `cases of ${cases} in which: ${situation}`;
    expect(counts[situation] ?? 0, message).toBeGreaterThanOrEqual(leastOf(cases, share));
  }
}

/** The expected count of a binomial distribution, minus the allowed deviations. */
const leastOf = (cases: number, share: number): number =>
  Math.floor(cases * share - DEVIATIONS * Math.sqrt(cases * share * (1 - share)));
