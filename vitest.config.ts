import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { TIERS } from './test/tiers.ts';

/** For tests that don't wait for other programs. */
const TEST_MAX_MS = 20_000;
/** Per thousand cases of a property. The slowest takes 12 s on an idle machine, and machines are shared. */
const CASES_MAX_MS = 40_000;

/** Node's compile cache, without which every thread and process that a test starts would compile the source again. */
const COMPILE_CACHE = fileURLToPath(new URL('node_modules/.cache/holdfast-compiled', import.meta.url));

/** Not in parallel with the unit tests, which keep every processor busy: these tests depend on timing. */
const AFTER_UNIT_TESTS = { groupOrder: 1 };

/** The tiers as projects. `cases`: how many cases of each property are tested (test/cases.ts). */
export function options(tier: 'quick' | 'all', cases: number): NonNullable<ViteUserConfig['test']> {
  return {
    // By default vitest leaves one processor free, which is half of a small machine.
    maxWorkers: '100%',
    testTimeout: TEST_MAX_MS,
    // Hooks start whole deployments of processes.
    hookTimeout: 60_000,
    // The output of passing tests is just noise.
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
          // Shares loaded modules among all unit tests.
          pool: 'threads',
          isolate: false,
          setupFiles: ['test/seed-setup.ts', 'test/unit-setup.ts'],
          testTimeout: Math.max(TEST_MAX_MS, (CASES_MAX_MS * cases) / 1000),
        },
      },
      {
        extends: true,
        // Loading the server again would take most of a file's time.
        test: { name: 'integration', ...TIERS.integration, isolate: false, sequence: AFTER_UNIT_TESTS },
      },
      { extends: true, test: { name: 'system', ...TIERS.system, sequence: AFTER_UNIT_TESTS } },
    ],
  };
}

/** Quick: a few hundred cases of each property, and nothing that has to be installed. */
export default defineConfig({
  test: options('quick', Number(process.env.HOLDFAST_CASES ?? 300)),
});
