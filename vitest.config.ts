import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    // Before a test, whole deployments of processes are started.
    hookTimeout: 60_000,
    // Output of tests that pass is of interest to nobody.
    silent: 'passed-only',
    reporters: ['default'],
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
