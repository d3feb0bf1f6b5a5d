/**
 * Cases of each property: a few hundred in the quick tiers (vitest.config.ts), 5,000 in `npm run test:all`, and as many as
 * `HOLDFAST_CASES` says where it is set. Properties whose cases are dear take a share of them.
 */
export const CASES = Number(process.env.HOLDFAST_CASES ?? 300);

/** Of a property with so many cases, in milliseconds, on a machine that has other things to do. */
export const PROPERTY_MAX_MS = 60_000 + 240 * CASES;

/** `HOLDFAST_SEED` looks elsewhere; a failure prints the seed that reproduces it. */
export const seedOr = (usual: number): number => Number(process.env.HOLDFAST_SEED ?? usual);

/** The cases of a share of one in `ways`. */
export const caseShare = (ways: number): number => Math.ceil(CASES / ways);

/** Dear cases are shrunk only where `HOLDFAST_SHRINK` asks for it: the first counterexample says enough. */
export const END_ON_FAILURE = process.env.HOLDFAST_SHRINK === undefined;
