import type { TestOptions } from 'vitest';
import type { Missing } from './debian-program.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Why this machine can't run the test; test/skip-report.ts prints it. */
    missing?: string;
  }
}

/** Options that skip a test or a suite if one of these programs is missing. */
export function needs(...found: readonly (object | Missing)[]): TestOptions {
  const missing = found.flatMap((program) => ('missing' in program ? [program.missing] : []));
  return missing.length === 0 ? {} : { skip: true, meta: { missing: missing.join('; ') } };
}
