// Compiles src/ into dist/ from scratch, so that a deleted source leaves nothing behind. dist/cli.js comes last: if it
// exists, the build is complete.
import { chmodSync, cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { compile, compileClient, root } from './compile-client.mjs';

rmSync(join(root, 'dist'), { recursive: true, force: true });
// With types, because the client is the only part of the package that applications import.
compileClient('dist');
// Browsers get the files of the status page unchanged.
cpSync(join(root, 'src/status/page'), join(root, 'dist/status/page'), { recursive: true });
compile('-p', 'tsconfig.build.json');
chmodSync(join(root, 'dist/cli.js'), 0o755);
