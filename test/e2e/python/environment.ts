import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MAY_INSTALL, notInstalled } from '../../installs.ts';

const REQUIREMENTS = fileURLToPath(new URL('requirements.txt', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/holdfast-python', import.meta.url));

const run = promisify(execFile);

/** An interpreter with everything in `requirements.txt` installed, or why this machine has none. */
export type PythonEnvironment = { readonly interpreter: string } | { readonly missing: string };

/**
 * Creates the environment on the first call, and keeps it for later test runs. Rejects if there is a usable Python but
 * the requirements can't be installed.
 */
export async function pythonEnvironment(): Promise<PythonEnvironment> {
  const version = await systemVersion();
  if (version === undefined) return { missing: 'there is no python3 on this machine' };
  const requirements = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12);
  const directory = join(CACHE, `${version}-${requirements}`);
  const interpreter = join(directory, 'bin', 'python');
  if (existsSync(interpreter)) return { interpreter };
  if (!MAY_INSTALL) return { missing: notInstalled('environment with the SDKs for Python') };

  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, 'new-'));
  try {
    await run('python3', ['-m', 'venv', fresh]);
  } catch (error) {
    rmSync(fresh, { recursive: true });
    return { missing: `python3 -m venv does not work on this machine: ${(error as Error).message}` };
  }
  const install = ['-m', 'pip', 'install', '--disable-pip-version-check', '--quiet', '-r', REQUIREMENTS];
  await run(join(fresh, 'bin', 'python'), install);
  publish(fresh, directory);
  return { interpreter };
}

/** For example `3.11`; `undefined` without Python 3. */
async function systemVersion(): Promise<string | undefined> {
  const print = 'import sys; print(f"{sys.version_info.major}.{sys.version_info.minor}")';
  try {
    return (await run('python3', ['-c', print])).stdout.trim();
  } catch {
    return undefined;
  }
}

/** Moves the environment to its final name only once it is complete: test files that run in parallel all use it. */
function publish(fresh: string, directory: string): void {
  try {
    renameSync(fresh, directory);
  } catch (error) {
    rmSync(fresh, { recursive: true });
    if (!existsSync(directory)) throw error;
  }
}
