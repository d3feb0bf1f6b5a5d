import { readFileSync } from 'node:fs';

/** The content of a file that the configuration names. Throws an `Error` whose message is that of a problem. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}
