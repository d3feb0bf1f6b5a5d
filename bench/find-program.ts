import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Not every user's path includes the system folders. */
const SYSTEM_FOLDERS = ['/usr/bin', '/usr/local/bin', '/usr/sbin', '/usr/local/sbin'];

/** Path of the first program found under any of these names. */
export function findProgram(...names: readonly string[]): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS];
  return folders
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
}
