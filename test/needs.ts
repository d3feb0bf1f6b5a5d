import type { TestOptions } from 'vitest';
import type { Missing } from './debian-program.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Why this machine cannot run the test; test/skip-report.ts prints it. */
    missing?: string;
  }
}

/** Options of a test, or of a suite: it is skipped where one of these programs is missing. */
export function needs(...found: readonly (object | Missing)[]): TestOptions {
  const missing = found.flatMap((program) => ('missing' in program ? [program.missing] : []));
  return missing.length === 0 ? {} : { skip: true, meta: { missing: missing.join('; ') } };
}
