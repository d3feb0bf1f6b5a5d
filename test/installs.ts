/**
 * Whether tests may install, build or download third-party programs. The quick tiers (vitest.config.ts) use what the
 * machine has and skip the rest.
 */
export const MAY_INSTALL = process.env.HOLDFAST_TIER !== 'quick';

/** The reason for a missing program that `npm run test:all` would install. */
export const notInstalled = (program: string): string =>
  `there is no ${program} on this machine; npm run test:all installs it`;
