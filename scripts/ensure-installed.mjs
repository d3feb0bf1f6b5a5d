// Runs before every npm script, on any version of Node, so that a fresh clone needs no other command.
// With --build it also compiles if a source is newer than the last build; with --site it also installs the dependencies
// of the site.
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

const npm = (directory, ...words) =>
  execFileSync('npm', words, { cwd: directory, stdio: ['ignore', 'inherit', 'inherit'], env: process.env });

function ensureInstalled(directory) {
  const installed = modifiedAt(join(directory, 'node_modules/.package-lock.json'));
  if (installed > 0 && installed >= modifiedAt(join(directory, 'package-lock.json'))) return;
  console.error('holdfast: installing dependencies (npm ci)');
  npm(directory, 'ci', '--no-audit', '--no-fund', '--loglevel=error');
}

ensureInstalled(root);
if (process.argv.includes('--site')) ensureInstalled(join(root, 'site'));

if (process.argv.includes('--build') && modifiedAt(join(root, 'dist/cli.js')) < newestIn(join(root, 'src'))) {
  npm(root, 'run', 'build', '--silent');
}
