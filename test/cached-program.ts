import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MAY_INSTALL, notInstalled } from './installs.ts';

const CACHE = fileURLToPath(new URL('../node_modules/.cache', import.meta.url));

/** The path of a cached program or directory, or the reason why this machine doesn't have it. */
export type CachedProgram = { readonly path: string } | { readonly missing: string };

/**
 * Returns the directory that `install` fills, and keeps it for later runs. It gets its final name only once it is
 * complete, so an interrupted installation leaves nothing behind. `shelf` is the cache directory with one subdirectory
 * per version; `what` is the name to report if it is missing.
 */
export async function cachedDirectory(
  shelf: string,
  version: string,
  what: string,
  install: (directory: string) => Promise<void>,
): Promise<CachedProgram> {
  const path = join(CACHE, shelf, version.replaceAll('/', '_'));
  if (existsSync(path)) return { path };
  if (!MAY_INSTALL) return { missing: notInstalled(what) };
  mkdirSync(join(CACHE, shelf), { recursive: true });
  const fresh = mkdtempSync(join(CACHE, shelf, 'new-'));
  try {
    await install(fresh);
    if (!existsSync(path)) renameSync(fresh, path);
    return { path };
  } catch (error) {
    return { missing: `${what} cannot be had here: ${(error as Error).message.slice(0, 300)}` };
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Returns the path of the program `name` inside such a directory. */
export async function cachedProgram(
  shelf: string,
  version: string,
  name: string,
  install: (directory: string) => Promise<void>,
): Promise<CachedProgram> {
  const directory = await cachedDirectory(shelf, version, name, install);
  return 'missing' in directory ? directory : { path: join(directory.path, name) };
}
