import { readFileSync } from 'node:fs';
import type { Problem } from './problem.ts';

/** The content of a configured file. Throws an `Error` whose message suits a {@link Problem}. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** The same for the file named by `setting`. If it can't be read, a problem is added and the result is undefined. */
export function readFileOf(setting: string, path: string, problems: Problem[]): string | undefined {
  try {
    return readTextFile(path);
  } catch (error) {
    problems.push({ path: setting, message: (error as Error).message });
    return undefined;
  }
}
