import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { decodeRun, type RunImage } from '../../src/checkpoint/file-format.ts';
import { FileLog, type FsyncPolicy, type Refusal } from '../../src/checkpoint/file-log.ts';
import type { FileSystem } from '../../src/checkpoint/file-system.ts';
import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import { encodeRecord } from '../../src/checkpoint/record-codec.ts';
import type { RunId } from '../../src/checkpoint/store.ts';
import { HEADER_RECORD, newRunId, temporaryDirectory, textOf, textRecord } from './fixtures.ts';

const OWNER_HASH = 'c'.repeat(64);
const SLOT = 1;

/** One process that shares a directory with others. */
class Peer {
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
    this.log = new FileLog({ dir, fsync, fs, open_files_max });
    onTestFinished(() => this.log.close());
  }

  acquire(): this {
    this.seq = this.log.acquire(SLOT, this.run, OWNER_HASH).seq;
    return this;
  }

  /** Appends one event that says `word`, after the header when there is none yet. */
  append(word: string): Refusal | undefined {
    const records: JournalRecord[] =
      this.seq < 0 ? [HEADER_RECORD, textRecord(0, word)] : [textRecord(this.seq, word)];
    const text = records.map(encodeRecord).join('');
    const refusal = this.log.appendBatch(text, Int32Array.of(SLOT, text.length)).get(0);
    if (!refusal) this.seq = Math.max(this.seq, 0) + 1;
    return refusal;
  }
}

function readRun(dir: string, run: RunId): RunImage {
  const names = node_fs.readdirSync(dir).filter((name) => name.startsWith(run));
  const finished = names.find((name) => name.endsWith('.run'));
  const epochOf = (name: string) => Number(name.split('.').at(-2)) || 1;
  const files = finished ? [finished] : names.sort((a, b) => epochOf(a) - epochOf(b));
  const image = decodeRun(
    files.map((name) => node_fs.readFileSync(join(dir, name))),
    run,
  );
  if (!image) throw new Error('the run cannot be read');
  return image;
}

/** A file system in which something else happens right before one of the calls made while it is `armed`. */
class InterruptedFileSystem {
  armed: boolean = false;
  interrupted: boolean = false;
  #calls = 0;
  readonly fs: FileSystem;

  constructor(at_call: number, interrupt: () => void) {
    this.fs = Object.fromEntries(
      Object.entries(node_fs).map(([name, call]) => [
        name,
        typeof call !== 'function'
          ? call
          : (...parameters: unknown[]) => {
              if (this.armed && ++this.#calls === at_call) {
                this.interrupted = true;
                interrupt();
              }
              return (call as (...all: unknown[]) => unknown)(...parameters);
            },
      ]),
    ) as unknown as FileSystem;
  }
}

/** Runs `scenario` with an interruption before its first call, its second, …, until it says that none happened. */
async function atEveryCall(scenario: (at_call: number) => Promise<boolean>): Promise<void> {
  let at_call = 1;
  while (await scenario(at_call)) at_call++;
  expect(at_call).toBeGreaterThan(2);
}

describe('a takeover at any moment', () => {
  test('of an append keeps what was acknowledged and lets one of the two go on', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const successor = new Peer(dir, run);
      const interruption = new InterruptedFileSystem(at_call, () => {
        expect(successor.acquire().append('B')).toBeUndefined();
      });
      const holder = new Peer(dir, run, interruption.fs).acquire();
      holder.append('a');
      interruption.armed = true;
      const refusal = holder.append('b');
      interruption.armed = false;
      if (!interruption.interrupted) return false;
      const words = textOf(readRun(dir, run).records);
      expect(words).toBe(refusal && !words.includes('b') ? 'aB' : 'abB');
      expect(holder.append('c')).toMatchObject({ code: 'stale' });
      expect(successor.append('C')).toBeUndefined();
      expect(textOf(readRun(dir, run).records)).toBe(`${words}C`);
      return true;
    });
  });

  test('of a finish leaves either a finished run or one that goes on', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const successor = new Peer(dir, run);
      let taken: boolean | undefined;
      const interruption = new InterruptedFileSystem(at_call, () => {
        try {
          taken = successor.acquire().append('B') === undefined;
        } catch (error) {
          expect(error).toMatchObject({ code: 'finished' });
          taken = false;
        }
      });
      const holder = new Peer(dir, run, interruption.fs).acquire();
      holder.append('a');
      interruption.armed = true;
      const finished = await holder.log.finish(SLOT, 'complete', 1).then(
        () => true,
        (refusal: Refusal) => refusal.code !== 'stale',
      );
      if (!interruption.interrupted) return false;
      expect(taken).toBe(!finished);
      const image = readRun(dir, run);
      expect(image.status).toBe(finished ? 'complete' : 'running');
      expect(textOf(image.records)).toBe(finished ? 'a' : 'aB');
      return true;
    });
  });

  test('that the holder does not know of yet keeps what the holder is told is stored', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const holder = new Peer(dir, run).acquire();
      holder.append('a');
      let refusal: Refusal | undefined;
      const interruption = new InterruptedFileSystem(at_call, () => {
        refusal = holder.append('b');
      });
      const successor = new Peer(dir, run, interruption.fs);
      interruption.armed = true;
      successor.acquire();
      if (!interruption.interrupted) return false;
      expect(successor.append('B')).toBeUndefined();
      const words = textOf(readRun(dir, run).records);
      if (refusal) expect(['aB', 'abB']).toContain(words);
      else expect(words).toBe('abB');
      return true;
    });
  });

  test('of a takeover leaves one holder, and every acknowledged event', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const first = new Peer(dir, run).acquire();
      first.append('a');
      const third = new Peer(dir, run);
      const interruption = new InterruptedFileSystem(at_call, () => {
        expect(third.acquire().append('3')).toBeUndefined();
      });
      const second = new Peer(dir, run, interruption.fs);
      interruption.armed = true;
      second.acquire();
      interruption.armed = false;
      if (!interruption.interrupted) return false;
      const refusals = [first.append('1'), second.append('2'), third.append('3')];
      expect(refusals.filter((refusal) => refusal === undefined)).toHaveLength(1);
      expect(refusals[0]).toMatchObject({ code: 'stale' });
      expect(textOf(readRun(dir, run).records)).toBe(refusals[1] ? 'a33' : 'a32');
      return true;
    });
  });
});

/** A file system on which some writes fail after the given number of bytes. */
function failing(failures: (number | 'sync')[]): FileSystem {
  const fail = (code: string) => Object.assign(new Error('no space left on device'), { code });
  return {
    ...node_fs,
    writeSync: ((fd: number, text: string) => {
      const bytes = failures[0];
      if (typeof bytes !== 'number') return node_fs.writeSync(fd, text);
      failures.shift();
      const written = node_fs.writeSync(fd, Buffer.from(text).subarray(0, bytes));
      if (bytes === 0) throw fail('ENOSPC');
      return written;
    }) as typeof node_fs.writeSync,
    fdatasyncSync: (fd) => {
      if (failures[0] !== 'sync') return node_fs.fdatasyncSync(fd);
      failures.shift();
      throw fail('EIO');
    },
  };
}

describe('a disk that fails', () => {
  test.each<[string, (number | 'sync')[]]>([
    ['before the first byte', [0]],
    ['in the middle of a line', [17]],
    ['several times at different places', [3, 0, 20, 1]],
    ['to make what was written durable', ['sync', 'sync']],
  ])('%s is told, and leaves no half line behind', (_, failures) => {
    const dir = temporaryDirectory();
    const run = newRunId();
    const pending: (number | 'sync')[] = [];
    const peer = new Peer(dir, run, failing(pending), 'append').acquire();
    expect(peer.append('a')).toBeUndefined();
    pending.push(...failures);
    for (const failure of failures) {
      expect(peer.append('b')).toMatchObject({ code: failure === 'sync' ? 'EIO' : 'ENOSPC' });
    }
    expect(peer.append('b')).toBeUndefined();
    expect(peer.append('c')).toBeUndefined();
    const image = readRun(dir, run);
    expect(image).not.toHaveProperty('damage');
    expect(textOf(image.records)).toBe('abc');
  });

  test('does not keep one run from being stored because another one cannot be', () => {
    const dir = temporaryDirectory();
    const pending: number[] = [];
    const log = new FileLog({ dir, fsync: 'never', fs: failing(pending) });
    onTestFinished(() => log.close());
    const runs = [newRunId(), newRunId()];
    for (const [slot, run] of runs.entries()) log.acquire(slot, run, OWNER_HASH);
    pending.push(5);
    const text = encodeRecord(HEADER_RECORD);
    const refused = log.appendBatch(text + text, Int32Array.of(0, text.length, 1, text.length));
    expect([...refused.keys()]).toEqual([0]);
    expect(runs.map((run) => readRun(dir, run).records.length)).toEqual([0, 1]);
  });

  test('leaves a new run claimable when its claim could not be written', () => {
    const dir = temporaryDirectory();
    const run = newRunId();
    const peer = new Peer(dir, run, failing([9]));
    expect(() => peer.acquire()).toThrow('only 9 of');
    expect(peer.acquire().append('a')).toBeUndefined();
    expect(textOf(readRun(dir, run).records)).toBe('a');
  });

  test('and is tried again finishes a run once', async () => {
    const dir = temporaryDirectory();
    const run = newRunId();
    let failures = 2;
    const fs: FileSystem = {
      ...node_fs,
      renameSync: (from, to) => {
        if (failures-- > 0) throw Object.assign(new Error('input/output error'), { code: 'EIO' });
        node_fs.renameSync(from, to);
      },
    };
    const peer = new Peer(dir, run, fs, 'finish').acquire();
    peer.append('a');
    for (let i = 0; i < 2; i++)
      await expect(peer.log.finish(SLOT, 'complete', 1)).rejects.toMatchObject({ code: 'EIO' });
    await peer.log.finish(SLOT, 'complete', 1);
    expect(readRun(dir, run)).toMatchObject({ status: 'complete', seq: 1 });
  });
});

test('files beyond the limit are closed and opened again when their run goes on', () => {
  const dir = temporaryDirectory();
  const open = new Set<number>();
  let most = 0;
  const fs: FileSystem = {
    ...node_fs,
    openSync: (...parameters) => {
      const fd = node_fs.openSync(...parameters);
      most = Math.max(most, open.add(fd).size);
      return fd;
    },
    closeSync: (fd) => {
      open.delete(fd);
      node_fs.closeSync(fd);
    },
  };
  const log = new FileLog({ dir, fsync: 'never', fs, open_files_max: 4 });
  const runs = Array.from({ length: 20 }, newRunId);
  for (const [slot, run] of runs.entries()) log.acquire(slot, run, OWNER_HASH);
  for (const record of [HEADER_RECORD, textRecord(0, 'a'), textRecord(1, 'b')]) {
    const line = encodeRecord(record);
    const meta = runs.flatMap((_, slot) => [slot, line.length]);
    expect(log.appendBatch(line.repeat(runs.length), Int32Array.from(meta)).size).toBe(0);
  }
  for (const run of runs) expect(textOf(readRun(dir, run).records)).toBe('ab');
  log.close();
  // Four runs, the takeovers of the directory, and a file being opened before another is closed.
  expect(most).toBeLessThanOrEqual(6);
  expect(open.size).toBe(0);
});
