// Starts the server that the arguments describe, but on free ports, and exits once it listens. Exits with 1 if it never
// does.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

const [command = '', ...options] = process.argv.slice(2);
const ports = ['--port', '0', ...(command === 'serve' ? ['--admin-port', '0'] : [])];
const words = [CLI, command, ...options, ...ports];
const replica = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...words], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
let isListening = false;
createInterface(replica.stdout).on('line', (line) => {
  if (!/^listening on |"msg":"listening"/.test(line)) return;
  isListening = true;
  replica.kill('SIGTERM');
});
replica.on('exit', (status) => process.exit(isListening && status === 0 ? 0 : 1));
