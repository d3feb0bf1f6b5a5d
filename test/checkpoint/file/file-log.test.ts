import * as node_fs from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FileSystem } from '../../../src/checkpoint/file/file-system.ts';
import { encodeRecord } from '../../../src/checkpoint/record-codec.ts';
import {
  COMPLETE,
  HEADER_RECORD,
  newRunId,
  OWNER,
  temporaryDirectory,
  textOf,
  textRecord,
} from '../fixtures.ts';
import { logOn, Peer, readRun, SLOT } from './file-peer.ts';

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
  ])('%s is reported, and leaves no half line behind', (_, failures) => {
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

  test('does not make a writer take back what its successor has read', () => {
    const dir = temporaryDirectory();
    const run = newRunId();
    const failures: (number | 'sync')[] = [];
    const holder = new Peer(dir, run, failing(failures), 'append').acquire();
    holder.append('a');
    failures.push('sync', 0);
    expect(holder.append('b')).toMatchObject({ code: 'EIO' });
    const successor = new Peer(dir, run).acquire(1);
    expect(successor.append('c')).toBeUndefined();
    expect(holder.append('b')).toMatchObject({ code: 'stale' });
    const image = readRun(dir, run);
    expect(image).not.toHaveProperty('damage');
    expect(textOf(image.records)).toBe('abc');
  });

  test('does not keep one run from being stored because another one cannot be', () => {
    const dir = temporaryDirectory();
    const pending: number[] = [];
    const log = logOn(dir, failing(pending));
    onTestFinished(() => log.close());
    const runs = [newRunId(), newRunId()];
    for (const [slot, run] of runs.entries()) log.acquire(slot, run, OWNER, 0);
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
      await expect(peer.log.finish(SLOT, COMPLETE, 1)).rejects.toMatchObject({ code: 'EIO' });
    await peer.log.finish(SLOT, COMPLETE, 1);
    expect(readRun(dir, run)).toMatchObject({ end: COMPLETE, seq: 1 });
  });
});

test('files beyond the limit are closed and opened again when their run continues', () => {
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
  const log = logOn(dir, fs);
  const runs = Array.from({ length: 20 }, newRunId);
  for (const [slot, run] of runs.entries()) log.acquire(slot, run, OWNER, 0);
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
