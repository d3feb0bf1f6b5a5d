/**
 * Cases per property: a few hundred in the quick tiers (vitest.config.ts), 5,000 in `npm run test:all`, or
 * `HOLDFAST_CASES` if it is set. Properties with expensive cases take a share of them.
 */
export const CASES = Number(process.env.HOLDFAST_CASES ?? 300);

/** The time limit for a property with that many cases, on a machine that is busy with other work. */
export const PROPERTY_MAX_MS = 60_000 + 240 * CASES;

/** `HOLDFAST_SEED` overrides the usual seed; a failure prints the seed that reproduces it. */
export const seedOr = (usual: number): number => Number(process.env.HOLDFAST_SEED ?? usual);

/** One case in `ways`, rounded up. */
export const caseShare = (ways: number): number => Math.ceil(CASES / ways);

/**
 * Shrinking expensive cases takes long, and the first counterexample is usually enough: `HOLDFAST_SHRINK` turns it on.
 */
export const END_ON_FAILURE = process.env.HOLDFAST_SHRINK === undefined;
