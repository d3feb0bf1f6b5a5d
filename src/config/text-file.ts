import { readFileSync } from 'node:fs';
import type { Problem } from './problem.ts';

/** The content of a file that the configuration names. Throws an `Error` whose message is that of a problem. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** The same for a file that `setting` names. Where it cannot be read, that is added to the problems. */
export function readFileOf(setting: string, path: string, problems: Problem[]): string | undefined {
  try {
    return readTextFile(path);
  } catch (error) {
    problems.push({ path: setting, message: (error as Error).message });
    return undefined;
  }
}
