import { expect } from 'vitest';

/** With so many standard deviations, one seed in three million fails a share that is as it should be. */
const DEVIATIONS = 5;

/**
 * Asserts that a property met the situations it is about: a property over cases that never interrupt or never recover
 * proves nothing. `counts`: the number of `cases` in which each situation occurred. `shares`: the part of all cases, from 0
 * to 1, in which it occurs at least, measured with thousands of them. A count fails if chance does not explain it: with a
 * few hundred cases a rare situation may be missing, with a few thousand it may not.
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

/** The expected count of a binomial distribution, less the deviations. */
const leastOf = (cases: number, share: number): number =>
  Math.floor(cases * share - DEVIATIONS * Math.sqrt(cases * share * (1 - share)));
