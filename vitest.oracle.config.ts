import { defineConfig } from 'vitest/config';

/**
 * The seam's grammar at full length, with another seed than in `npm run test:all`: 100,000 cases of each claim, and
 * 2,000 over sockets through real SDKs.
 */
const {
  HOLDFAST_SEED = '20261123',
  HOLDFAST_SEAM_CASES = '100000',
  HOLDFAST_SDK_CASES = '2000',
} = process.env;

export default defineConfig({
  test: {
    include: ['test/plans/seam/oracle.test.ts', 'test/e2e/seam-oracle.test.ts'],
    env: { HOLDFAST_SEED, HOLDFAST_SEAM_CASES, HOLDFAST_SDK_CASES },
    testTimeout: 120_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    silent: 'passed-only',
    reporters: ['default'],
  },
});
