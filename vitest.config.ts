import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { TIERS } from './test/tiers.ts';

/** For a test that does not wait for others. */
const TEST_MAX_MS = 20_000;
/** For each thousand cases of a property. The slowest takes 12 s where nothing else runs, and machines are shared. */
const CASES_MAX_MS = 40_000;

/** Where Node keeps what it made of the source, which every thread and process that a test starts would make again. */
const COMPILE_CACHE = fileURLToPath(new URL('node_modules/.cache/holdfast-compiled', import.meta.url));

/** Not beside the unit tests, which keep every processor busy: these are about what happens in time. */
const AFTER_UNIT_TESTS = { groupOrder: 1 };

/** The tiers as projects, with so many cases of each property (test/cases.ts). */
export function options(tier: 'quick' | 'all', cases: number): NonNullable<ViteUserConfig['test']> {
  return {
    // Left to itself, vitest spares one processor: half of a small machine.
    maxWorkers: '100%',
    testTimeout: TEST_MAX_MS,
    // Before a test, whole deployments of processes are started.
    hookTimeout: 60_000,
    // Output of tests that pass is of interest to nobody.
    silent: 'passed-only',
    reporters: ['default', './test/skip-report.ts'],
    setupFiles: ['test/seed-setup.ts'],
    env: { HOLDFAST_TIER: tier, HOLDFAST_CASES: String(cases), NODE_COMPILE_CACHE: COMPILE_CACHE },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          ...TIERS.unit,
          // What they import is loaded once for all of them.
          pool: 'threads',
          isolate: false,
          setupFiles: ['test/seed-setup.ts', 'test/unit-setup.ts'],
          testTimeout: Math.max(TEST_MAX_MS, (CASES_MAX_MS * cases) / 1000),
        },
      },
      {
        extends: true,
        // Loading the server anew takes most of the time of a file.
        test: { name: 'integration', ...TIERS.integration, isolate: false, sequence: AFTER_UNIT_TESTS },
      },
      { extends: true, test: { name: 'system', ...TIERS.system, sequence: AFTER_UNIT_TESTS } },
    ],
  };
}

/** Quick: a few hundred cases of each property, and nothing that would have to be installed. */
export default defineConfig({
  test: options('quick', Number(process.env.HOLDFAST_CASES ?? 300)),
});
