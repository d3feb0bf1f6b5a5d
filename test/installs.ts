/**
 * Whether tests may install, build or download programs of others. The quick tiers (vitest.config.ts) take what the machine
 * has, and skip the rest.
 */
export const MAY_INSTALL = process.env.HOLDFAST_TIER !== 'quick';

/** Why a program is missing that `npm run test:all` would have brought. */
export const notInstalled = (program: string): string =>
  `there is no ${program} on this machine; npm run test:all installs it`;
