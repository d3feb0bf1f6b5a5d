import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.ts';

const QUIETLY = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];

/** Installs one package, in any npm notation, into a new, empty project at `directory`. */
export async function install(
  directory: string,
  name: string,
  { limit_ms = 0, options = [] as string[] } = {},
) {
  mkdirSync(directory);
  writeFileSync(join(directory, 'package.json'), '{ "private": true }\n');
  await run('npm', ['install', ...QUIETLY, ...options, name], { cwd: directory, timeout: limit_ms });
}

/**
 * Installs Node `version` at `directory` and returns its path, or the error if it isn't available within `limit_ms`.
 */
export async function installNode(directory: string, version: string, limit_ms: number) {
  const name = `node-${process.platform}-${process.arch}`;
  try {
    await install(directory, `${name}@${version}`, { limit_ms, options: ['--ignore-scripts'] });
  } catch (error) {
    return error as Error;
  }
  return join(directory, 'node_modules', name, 'bin/node');
}
