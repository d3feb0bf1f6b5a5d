import { defineConfig } from 'vitest/config';

/** A new seed every day; the titles of the tests contain it. */
const {
  HOLDFAST_SEED = String(Math.floor(Date.now() / 86_400_000)),
  HOLDFAST_CASES = '50000',
  HOLDFAST_SEAM_CASES = '1000000',
  HOLDFAST_SDK_CASES = '20000',
  HOLDFAST_KILLS = '300',
  HOLDFAST_HONEST = '50',
  HOLDFAST_HOSTILE = '200',
  HOLDFAST_STORM_RUNS = '200',
  HOLDFAST_DEATHS = '3000',
  HOLDFAST_LOSSES = '60',
  HOLDFAST_AGENT_KILLS = '350',
  HOLDFAST_ABSENCES = '120',
} = process.env;

/**
 * Random tests, too long for a run that people wait for: ten times the cases of `npm run test:all` and of the oracle.
 */
export default defineConfig({
  test: {
    include: [
      'test/**/*.property.test.ts',
      'test/chaos/**/*.test.ts',
      'test/checkpoint/file/torture.test.ts',
      'test/simulation/histories/reintroduced.test.ts',
      'test/plans/seam/oracle.test.ts',
      'test/e2e/seam-oracle.test.ts',
    ],
    env: {
      HOLDFAST_SEED,
      HOLDFAST_CASES,
      HOLDFAST_SEAM_CASES,
      HOLDFAST_SDK_CASES,
      HOLDFAST_KILLS,
      HOLDFAST_HONEST,
      HOLDFAST_HOSTILE,
      HOLDFAST_STORM_RUNS,
      HOLDFAST_DEATHS,
      HOLDFAST_LOSSES,
      HOLDFAST_AGENT_KILLS,
      HOLDFAST_ABSENCES,
    },
    testTimeout: 4 * 3_600_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    silent: 'passed-only',
    reporters: ['default', './test/skip-report.ts'],
  },
});
