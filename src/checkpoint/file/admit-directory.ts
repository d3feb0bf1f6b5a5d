import { closeSync, constants, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { StoreConfigurationError } from '../store.ts';
import { decodeFrame, VERSION } from './frame.ts';
import { isOfOldFormat, segmentNumber } from './names.ts';

const HEAD_BYTES = 128;

/** Throws a {@link StoreConfigurationError} if the directory contains files that this version can't read. */
export function admitDirectory(dir: string): void {
  const names = readdirSync(dir);
  const old = names.find(isOfOldFormat);
  if (old !== undefined)
    throw new StoreConfigurationError(
      `checkpoint.store: the directory ${dir} holds runs in a format that is not read any more (${old}); ` +
        'move it away, or configure another directory',
    );
  const newest = names
    .filter((name) => segmentNumber(name) !== undefined)
    .sort()
    .at(-1);
  const version = newest === undefined ? undefined : versionOf(join(dir, newest));
  if (version !== undefined && version > VERSION)
    throw new StoreConfigurationError(
      `checkpoint.store: the directory ${dir} was written by a newer version (format ${version}, this one reads ${VERSION}); ` +
        'run that version, or configure another directory',
    );
}

/** Undefined if the segment doesn't state its version. */
function versionOf(path: string): number | undefined {
  const head = Buffer.alloc(HEAD_BYTES);
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const size = readSync(fd, head, 0, HEAD_BYTES, 0);
    const end = head.indexOf('\n', 1);
    const frame = end > 0 && end < size ? decodeFrame(head, 1, end) : undefined;
    return frame?.kind === 'h'
      ? Number(head.toString('latin1', frame.body_start, frame.body_end))
      : undefined;
  } finally {
    closeSync(fd);
  }
}
