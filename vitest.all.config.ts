import { defineConfig } from 'vitest/config';
import { options } from './vitest.config.ts';

const { HOLDFAST_CASES = '5000' } = process.env;

/** Every tier at full length: programs are installed, and what decides about answers is covered. */
export default defineConfig({
  test: {
    ...options('all', Number(HOLDFAST_CASES)),
    coverage: {
      provider: 'v8',
      // What the status page is made of runs in browsers, out of reach.
      include: ['src/**/*.ts'],
      reporter: ['text-summary'],
      thresholds: {
        // Pure code that decides what becomes of an answer: nothing excuses a branch that no test takes.
        'src/plans/**': { branches: 98 },
        'src/interrupts/**': { branches: 98 },
      },
    },
  },
});
