#!/usr/bin/env node
// Runs on any Node version in order to name the required one, so it has no static imports and uses only old syntax.

/** Must match `engines` in package.json. */
const OLDEST_MAJOR = 22;
const OLDEST_MINOR = 19;
const EXIT_USAGE = 2;

const version = process.versions.node;
const [major = 0, minor = 0] = version.split('.').map(Number);

if (major < OLDEST_MAJOR || (major === OLDEST_MAJOR && minor < OLDEST_MINOR)) {
  process.stderr.write(`Holdfast needs Node ${OLDEST_MAJOR}.${OLDEST_MINOR} or later; this is ${version}\n`);
  process.exitCode = EXIT_USAGE;
} else {
  void import('./commands/main.ts').then(({ main }) => main(process.argv.slice(2)));
}
