import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUTPUT = ['--noEmit', 'false', '--rewriteRelativeImportExtensions', '--rootDir', 'src'];

/**
 * Compiles the client to JavaScript and returns the directory with `client/index.js` and its imports. Throws if the
 * client needs anything that browsers lack: its project has the DOM's types but none of Node's.
 */
export function compileClient(): { readonly directory: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-client-'));
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', 'src/client', ...OUTPUT, '--outDir', directory], {
    cwd: ROOT,
  });
  return { directory, remove: () => rmSync(directory, { recursive: true }) };
}
