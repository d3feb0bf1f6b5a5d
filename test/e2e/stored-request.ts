import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';

/**
 * Resolves once the directory of a file store has the request with this question, which must have been made with
 * `Holdfast-Resume: 1`: from then on any replica can continue its run.
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
