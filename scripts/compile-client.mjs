// Compiles src/client and its imports, with types. Its TypeScript project excludes Node's types, because browsers must
// run the client too.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

export const compile = (...words) =>
  execFileSync(join(root, 'node_modules/.bin/tsc'), words, { cwd: root, stdio: 'inherit' });

// CommonJS applications get a copy: TypeScript lets them require() an ES module only if `module` targets Node 20 or
// later, and the older runtimes that the client supports can't do it at all.
const COMMONJS = ['--module', 'commonjs', '--moduleResolution', 'bundler', '--verbatimModuleSyntax', 'false'];

/**
 * Writes ES modules with types to `directory`, relative to the repository, and CommonJS to its `commonjs` subdirectory.
 */
export function compileClient(directory) {
  const output = [
    '--noEmit',
    'false',
    '--rewriteRelativeImportExtensions',
    '--declaration',
    '--rootDir',
    'src',
  ];
  const compileTo = (path, ...words) => compile('-p', 'src/client', ...output, '--outDir', path, ...words);
  compileTo(directory);
  compileTo(`${directory}/commonjs`, ...COMMONJS);
  const manifest = { type: 'commonjs', sideEffects: false };
  writeFileSync(join(root, directory, 'commonjs/package.json'), `${JSON.stringify(manifest)}\n`);
}
