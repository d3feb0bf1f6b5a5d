import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';

/**
 * Resolves once a file store's directory contains the request with this question, which must have been made with
 * `Holdfast-Resume: 1`. From then on, any replica can continue its run.
 */
export async function requestStored(store: string, question: string): Promise<void> {
  await vi.waitUntil(
    () => {
      const segments = readdirSync(store).filter((name) => name.startsWith('log-'));
      return segments.some((name) => readFileSync(join(store, name), 'utf8').includes(question));
    },
    { timeout: 30_000 },
  );
}
