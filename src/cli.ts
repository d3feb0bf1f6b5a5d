#!/usr/bin/env node
// Runs on every Node there is, to say which one is needed: without static imports, and in older syntax alone.

/** As in `engines` of package.json. */
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
