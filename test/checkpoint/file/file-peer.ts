import { randomBytes } from 'node:crypto';
import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { FileDirectory } from '../../../src/checkpoint/file/file-directory.ts';
import { decodeRun, type RunImage } from '../../../src/checkpoint/file/file-format.ts';
import { FileLog } from '../../../src/checkpoint/file/file-log.ts';
import type { Refusal } from '../../../src/checkpoint/file/file-refusal.ts';
import type { FsyncPolicy } from '../../../src/checkpoint/file/file-segments.ts';
import type { FileSystem } from '../../../src/checkpoint/file/file-system.ts';
import type { JournalRecord } from '../../../src/checkpoint/journal.ts';
import { encodeRecord } from '../../../src/checkpoint/record-codec.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { HEADER_RECORD, OWNER, textRecord } from '../fixtures.ts';

export const SLOT = 1;

/** The log of a process of its own. */
export function logOn(
  dir: string,
  fs: FileSystem = node_fs,
  fsync: FsyncPolicy = 'never',
  open_files_max = 4,
): FileLog {
  const replica = randomBytes(4).toString('hex');
  return new FileLog({ directory: new FileDirectory(dir, fs), fsync, replica, open_files_max });
}

/** One process that shares a directory with others. */
export class Peer {
  readonly log: FileLog;
  readonly run: RunId;
  seq = -1;

  constructor(
    dir: string,
    run: RunId,
    fs: FileSystem = node_fs,
    fsync: FsyncPolicy = 'never',
    open_files_max = 4,
  ) {
    this.run = run;
    this.log = logOn(dir, fs, fsync, open_files_max);
    onTestFinished(() => this.log.close());
  }

  /** `after`: the epoch to follow. */
  acquire(after = 0): this {
    this.seq = this.log.acquire(SLOT, this.run, OWNER, after).seq;
    return this;
  }

  /** Appends one event that says `word`, after the header when there is none yet. */
  append(word: string): Refusal | undefined {
    const records: JournalRecord[] =
      this.seq < 0 ? [HEADER_RECORD, textRecord(0, word)] : [textRecord(this.seq, word)];
    const text = records.map((record) => encodeRecord(record)).join('');
    const refusal = this.log.appendBatch(text, Int32Array.of(SLOT, text.length)).get(0);
    if (!refusal) this.seq = Math.max(this.seq, 0) + 1;
    return refusal;
  }
}

/** The run as any process would read it. */
export function readRun(dir: string, run: RunId): RunImage {
  const names = node_fs.readdirSync(dir).filter((name) => name.startsWith(run) && !name.endsWith('.tmp'));
  const finished = names.find((name) => name.endsWith('.run'));
  const epochOf = (name: string) => Number(name.split('.').at(-2)) || 1;
  const files = finished ? [finished] : names.sort((a, b) => epochOf(a) - epochOf(b));
  const image = decodeRun(
    files.map((name) => node_fs.readFileSync(join(dir, name))),
    run,
    undefined,
  );
  if (!image) throw new Error('the run cannot be read');
  return image;
}
