import { readFileSync } from 'node:fs';

/** The manifest of this package: `src/lib` and `dist/lib` are both two levels below it. */
const manifest: { version: string } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

export const VERSION = manifest.version;
