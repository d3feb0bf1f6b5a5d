// Runs before every npm script, on whatever Node the machine has: a fresh clone needs no other command.
// With --build it also compiles when a source is newer than the last build.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

const modifiedAt = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);

function newestIn(directory) {
  return Math.max(
    ...readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => modifiedAt(join(entry.parentPath, entry.name))),
  );
}

const npm = (...words) =>
  execFileSync('npm', words, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env: process.env });

const installed = modifiedAt(join(root, 'node_modules/.package-lock.json'));
if (installed === 0 || installed < modifiedAt(join(root, 'package-lock.json'))) {
  console.error('holdfast: installing dependencies (npm ci)');
  npm('ci', '--no-audit', '--no-fund', '--loglevel=error');
}

if (process.argv.includes('--build') && modifiedAt(join(root, 'dist/cli.js')) < newestIn(join(root, 'src'))) {
  npm('run', 'build', '--silent');
}
