import { defineConfig } from 'vitest/config';

/** Tests against a real `llama-server`, which is compiled first unless it's cached. */
export default defineConfig({
  test: {
    include: ['test/llama/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    globalSetup: ['test/llama/build.ts'],
    fileParallelism: false,
    silent: 'passed-only',
    reporters: ['default'],
  },
});
