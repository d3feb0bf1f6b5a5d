import { afterAll, beforeAll, expect, vi } from 'vitest';

/** Fails the suite if any client prints something or emits a warning. */
export function expectNoWarnings(): void {
  const warnings: unknown[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  beforeAll(() => {
    for (const way of ['warn', 'error', 'info'] as const)
      vi.spyOn(console, way).mockImplementation((...words) => warnings.push(words));
    process.on('warning', onWarning);
  });
  afterAll(() => {
    process.off('warning', onWarning);
    vi.restoreAllMocks();
    expect(warnings).toEqual([]);
  });
}
