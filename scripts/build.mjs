// Compiles src/ into dist/ from scratch, so that a deleted source leaves nothing behind. dist/cli.js comes last: where
// it is there, so is the rest.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

const compile = (...words) =>
  execFileSync(join(root, 'node_modules/.bin/tsc'), words, { cwd: root, stdio: 'inherit' });

/** The client, with types: it is all that is imported from the package. */
function compileClient(directory, ...words) {
  const output = ['--noEmit', 'false', '--rewriteRelativeImportExtensions', '--declaration'];
  compile('-p', 'src/client', ...output, '--rootDir', 'src', '--outDir', directory, ...words);
}

rmSync(join(root, 'dist'), { recursive: true, force: true });
compileClient('dist', '--emitDeclarationOnly');

// A second time for applications in CommonJS: TypeScript lets them require() ES modules only where `module` says that
// they run on Node 20 or later, and the older of the runtimes that the client is for cannot.
const COMMONJS = ['--module', 'commonjs', '--moduleResolution', 'bundler', '--verbatimModuleSyntax', 'false'];
compileClient('dist/commonjs', ...COMMONJS);
const manifest = { type: 'commonjs', sideEffects: false };
writeFileSync(join(root, 'dist/commonjs/package.json'), `${JSON.stringify(manifest)}\n`);

// What the status page is made of goes to browsers as it is.
cpSync(join(root, 'src/status/page'), join(root, 'dist/status/page'), { recursive: true });
compile('-p', 'tsconfig.build.json');
chmodSync(join(root, 'dist/cli.js'), 0o755);
