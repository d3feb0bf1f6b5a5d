// Compiles src/client, with its types and with what it imports. Browsers have to run it: its project knows none of Node's types.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

export const compile = (...words) =>
  execFileSync(join(root, 'node_modules/.bin/tsc'), words, { cwd: root, stdio: 'inherit' });

// Applications in CommonJS get a copy: TypeScript lets them require() ES modules only where `module` says that they run
// on Node 20 or later, and the older of the runtimes that the client is for cannot.
const COMMONJS = ['--module', 'commonjs', '--moduleResolution', 'bundler', '--verbatimModuleSyntax', 'false'];

/** ES modules with their types at `directory`, which is relative to the repository, and CommonJS in its `commonjs`. */
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
