// Compiles src/ into dist/ from scratch, so that a deleted source leaves nothing behind. dist/cli.js comes last: where
// it is there, so is the rest.
import { chmodSync, cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { compile, compileClient, root } from './compile-client.mjs';

rmSync(join(root, 'dist'), { recursive: true, force: true });
// With types: it is all that is imported from the package.
compileClient('dist');
// What the status page is made of goes to browsers as it is.
cpSync(join(root, 'src/status/page'), join(root, 'dist/status/page'), { recursive: true });
compile('-p', 'tsconfig.build.json');
chmodSync(join(root, 'dist/cli.js'), 0o755);
