// Compiles the client into clients/javascript, the package that is published without the server.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { compileClient, root } from './compile-client.mjs';

const output = 'clients/javascript/dist';
rmSync(join(root, output), { recursive: true, force: true });
compileClient(output);
