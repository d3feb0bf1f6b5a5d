import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/holdfast-conformance');

/** The folder of that name, kept for later runs. It gets its name only when `install` has filled it. */
export async function cached(name: string, install: (directory: string) => Promise<void>): Promise<string> {
  const directory = join(CACHE, name);
  if (existsSync(directory)) return directory;
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, 'new-'));
  try {
    await install(fresh);
    if (!existsSync(directory)) renameSync(fresh, directory);
    return directory;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
