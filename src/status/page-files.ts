import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

const DIRECTORY = join(import.meta.dirname, 'page');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
}

/** The page and what it is made of, by name. There is nothing else to be had of the disk. */
export const readPageFiles = (): ReadonlyMap<string, PageFile> =>
  new Map(
    readdirSync(DIRECTORY).map((name) => [
      name,
      {
        type: TYPES[extname(name)] ?? 'application/octet-stream',
        bytes: readFileSync(join(DIRECTORY, name)),
      },
    ]),
  );
