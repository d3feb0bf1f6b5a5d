import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { MAY_INSTALL, notInstalled } from './installs.ts';

const INSTALL_LOCK = '/tmp/holdfast-apt-install.lock';
const run = promisify(execFile);

/** The reason why this machine can't run a check. */
export interface Missing {
  readonly missing: string;
}

/**
 * Finds the program on this machine, or in the Debian package of the same name, which `npm run test:all` installs if it
 * can.
 */
export async function debianProgram(name: string): Promise<{ readonly path: string } | Missing> {
  const path = inPath(name);
  if (path !== undefined) return { path };
  if (!MAY_INSTALL) return { missing: notInstalled(name) };
  if (process.getuid?.() !== 0 || inPath('apt-get') === undefined)
    return { missing: `there is no ${name} on this machine, and it cannot be installed` };
  // Test files run in parallel and may all get here. At runlevel 1, Debian doesn't start the installed services.
  const install = `command -v ${name} || (apt-get update -qq && apt-get install -y -qq --no-install-recommends ${name})`;
  const env = { ...process.env, RUNLEVEL: '1', DEBIAN_FRONTEND: 'noninteractive' };
  try {
    await run('flock', [INSTALL_LOCK, 'sh', '-c', install], { env });
  } catch (error) {
    return { missing: `${name} could not be installed: ${(error as Error).message}` };
  }
  const installed = inPath(name);
  return installed === undefined
    ? { missing: `the package ${name} has no program of that name` }
    : { path: installed };
}

/** The path of the program on this machine. */
export function inPath(program: string): string | undefined {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'];
  return directories.map((directory) => join(directory, program)).find((path) => existsSync(path));
}
