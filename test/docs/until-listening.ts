// Runs a replica as the words say, but on free ports, until it listens. Exits with 1 if it never does.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

const words = [CLI, ...process.argv.slice(2), '--port', '0', '--admin-port', '0'];
const replica = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...words], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
let isListening = false;
createInterface(replica.stdout).on('line', (line) => {
  if (JSON.parse(line).msg !== 'listening') return;
  isListening = true;
  replica.kill('SIGTERM');
});
replica.on('exit', (status) => process.exit(isListening && status === 0 ? 0 : 1));
