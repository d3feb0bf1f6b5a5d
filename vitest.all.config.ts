import { defineConfig } from 'vitest/config';
import { options } from './vitest.config.ts';

const { HOLDFAST_CASES = '5000' } = process.env;

/** Every tier at full length: installs the programs that tests need, and measures coverage. */
export default defineConfig({
  test: {
    ...options('all', Number(HOLDFAST_CASES)),
    coverage: {
      provider: 'v8',
      // The status page runs in browsers, where this coverage can't see it.
      include: ['src/**/*.ts'],
      reporter: ['text-summary'],
      thresholds: {
        // Pure code that decides how an answer continues, so there is no excuse for an untested branch.
        'src/plans/**': { branches: 98 },
        'src/interrupts/**': { branches: 98 },
      },
    },
  },
});
