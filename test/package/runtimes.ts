import { arch, platform } from 'node:os';
import { type CachedProgram, cachedProgram } from '../cached-program.ts';
import { install } from './install.ts';

/** The packages for one platform contain the program and need no install script. */
const DENO = `@deno/${platform()}-${arch()}${platform() === 'linux' ? '-glibc' : ''}`;
const BUN = `@oven/bun-${platform()}-${arch()}`;
const IGNORE_SCRIPTS = { options: ['--ignore-scripts'] };

const runtime = (name: string, version: string, program: string): Promise<CachedProgram> =>
  cachedProgram(
    'holdfast-runtimes',
    `${name}@${version}`,
    `project/node_modules/${name}/${program}`,
    (directory) => install(`${directory}/project`, `${name}@${version}`, IGNORE_SCRIPTS),
  );

export const deno = (): Promise<CachedProgram> => runtime(DENO, '2.9.6', 'deno');

export const bun = (): Promise<CachedProgram> => runtime(BUN, '1.4.5', 'bin/bun');
