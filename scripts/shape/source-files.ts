import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SourceFile } from './imports.ts';

/** The TypeScript files below src/ of the repository at `root`, sorted by path. */
export function sourceFiles(root: string): SourceFile[] {
  return globSync('src/**/*.ts', { cwd: root })
    .map((path) => path.replaceAll('\\', '/'))
    .sort((one, other) => (one < other ? -1 : 1))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}
