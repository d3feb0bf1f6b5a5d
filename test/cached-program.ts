import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MAY_INSTALL, notInstalled } from './installs.ts';

const CACHE = fileURLToPath(new URL('../node_modules/.cache', import.meta.url));

/** A program, or why this machine has none. */
export type CachedProgram = { readonly path: string } | { readonly missing: string };

/**
 * The program at `name` of what `install` puts into the directory it is given: under its final name only when it is whole,
 * and kept for later test runs. `shelf`: the directory of the cache that has one for each version.
 */
export async function cachedProgram(
  shelf: string,
  version: string,
  name: string,
  install: (directory: string) => Promise<void>,
): Promise<CachedProgram> {
  const directory = join(CACHE, shelf, version.replaceAll('/', '_'));
  const path = join(directory, name);
  if (existsSync(path)) return { path };
  if (!MAY_INSTALL) return { missing: notInstalled(name) };
  mkdirSync(join(CACHE, shelf), { recursive: true });
  const fresh = mkdtempSync(join(CACHE, shelf, 'new-'));
  try {
    await install(fresh);
    if (!existsSync(directory)) renameSync(fresh, directory);
    return { path };
  } catch (error) {
    return { missing: `${name} cannot be had here: ${(error as Error).message.slice(0, 300)}` };
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
