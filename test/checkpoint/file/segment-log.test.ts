import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { encodeFrame } from '../../../src/checkpoint/file/frame.ts';
import { segmentName } from '../../../src/checkpoint/file/names.ts';
import type { FileSystem } from '../../../src/checkpoint/file/private-directory.ts';
import type { Request } from '../../../src/checkpoint/file/protocol.ts';
import { SYNC_AFTER_MS } from '../../../src/checkpoint/file/segment-log.ts';
import { encodeRecordBody } from '../../../src/checkpoint/record-codec.ts';
import { COMPLETE, HEADER_RECORD, newRunId, OWNER, temporaryDirectory, textOf } from '../fixtures.ts';
import { Peer, readRun } from './file-peer.ts';

const FIRST = segmentName(1);

/** A file system on which some writes fail after the given number of bytes, or the size of a file can't be read. */
function failing(failures: (number | 'stat')[]): FileSystem {
  const fail = (code: string) => Object.assign(new Error('no space left on device'), { code });
  return {
    ...node_fs,
    writeSync: ((fd: number, content: Buffer) => {
      const bytes = failures[0];
      if (typeof bytes !== 'number') return node_fs.writeSync(fd, content);
      failures.shift();
      const written = node_fs.writeSync(fd, content.subarray(0, bytes));
      if (bytes === 0) throw fail('ENOSPC');
      return written;
    }) as typeof node_fs.writeSync,
    fstatSync: ((fd: number) => {
      if (failures[0] !== 'stat') return node_fs.fstatSync(fd);
      failures.shift();
      throw fail('EIO');
    }) as typeof node_fs.fstatSync,
  };
}

describe('a disk that fails', () => {
  test.each<[string, (number | 'stat')[]]>([
    ['before the first byte', [0]],
    ['in the middle of a line', [17]],
    ['several times at different places', [3, 0, 20, 1]],
    ['to say how much was written', ['stat', 'stat']],
  ])('%s is reported, and leaves no half line behind', (_, failures) => {
    const dir = temporaryDirectory();
    const pending: (number | 'stat')[] = [];
    const peer = new Peer(dir, undefined, { fs: failing(pending) }).acquire();
    expect(peer.append('a')).toBeUndefined();
    pending.push(...failures);
    for (const failure of failures) {
      expect(peer.append('b')).toMatchObject({ code: failure === 'stat' ? 'EIO' : 'ENOSPC' });
    }
    expect(peer.append('b')).toBeUndefined();
    expect(peer.append('c')).toBeUndefined();
    for (const image of [readRun(dir, peer.run), readRun(dir, peer.run)]) {
      expect(image).not.toHaveProperty('damage');
      expect(textOf(image.records)).toBe('abc');
    }
  });

  test('does not make a writer take back what its successor has read', () => {
    const dir = temporaryDirectory();
    const run = newRunId();
    const failures: (number | 'stat')[] = [];
    const holder = new Peer(dir, run, { fs: failing(failures) }).acquire();
    holder.append('a');
    failures.push('stat', 0);
    expect(holder.append('b')).toMatchObject({ code: 'EIO' });
    expect(holder.append('b')).toMatchObject({ code: 'ENOSPC' });
    const successor = new Peer(dir, run).acquire(1);
    expect(successor.append('c')).toBeUndefined();
    expect(holder.append('b')).toMatchObject({ code: 'stale' });
    const image = readRun(dir, run);
    expect(image).not.toHaveProperty('damage');
    expect(textOf(image.records)).toBe('abc');
  });

  test('keeps what was written whole of a batch, and refuses the rest of it', () => {
    const dir = temporaryDirectory();
    const pending: number[] = [];
    const peer = new Peer(dir, undefined, { fs: failing(pending) }).acquire();
    const other = newRunId();
    peer.directory.perform([['acquire', { run: other, owner: OWNER, after: 0 }]]);
    const append = (run: string): Request => ['append', [run, 1, undefined, encodeRecordBody(HEADER_RECORD)]];
    const line = encodeFrame('r', other, 1, encodeRecordBody(HEADER_RECORD));
    pending.push(line.length + 20);
    const replies = peer.directory.perform([append(peer.run), append(other)]);
    expect(replies).toMatchObject([undefined, { refusal: { code: 'ENOSPC' } }]);
    expect([peer.run, other].map((run) => readRun(dir, run).records.length)).toEqual([1, 0]);
    expect(peer.directory.perform([append(other)])).toEqual([undefined]);
    expect(readRun(dir, other).records).toEqual([HEADER_RECORD]);
  });

  test.each([9, 'stat'] as const)('leaves a new run claimable when its claim failed (%s)', (failure) => {
    const dir = temporaryDirectory();
    const pending: (number | 'stat')[] = [];
    const peer = new Peer(dir, undefined, { fs: failing(pending) });
    pending.push(failure);
    expect(() => peer.acquire()).toThrow(/could be written|no space left/);
    expect(peer.acquire().append('a')).toBeUndefined();
    expect(textOf(readRun(dir, peer.run).records)).toBe('a');
  });

  test('to make the end of a run durable is reported, and the next end is forced to disk again', async () => {
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    const disk = new Disk(1);
    const peer = finishing(dir, disk, (error) => errors.push(error));
    await expect.poll(() => errors).toMatchObject([{ code: 'EIO' }]);
    expect(readRun(dir, peer.run)).toMatchObject({ end: COMPLETE, seq: 1 });
    await pause(2 * SYNC_AFTER_MS);
    expect(disk.syncs).toBe(1);
    peer.run = newRunId();
    peer.acquire().finish(COMPLETE);
    await expect.poll(() => disk.syncs).toBe(2);
    expect(errors).toHaveLength(1);
  });
});

/** A disk that counts what is forced to it, the first few times in vain. */
class Disk {
  syncs = 0;
  last_syncs = 0;
  readonly fs: FileSystem;

  constructor(failures = 0) {
    this.fs = {
      ...node_fs,
      fdatasync: ((fd: number, done: (error: Error | null) => void) => {
        if (++this.syncs > failures) node_fs.fdatasync(fd, done);
        else done(Object.assign(new Error('input/output error'), { code: 'EIO' }));
      }) as typeof node_fs.fdatasync,
      fdatasyncSync: (fd) => {
        this.last_syncs++;
        node_fs.fdatasyncSync(fd);
      },
    };
  }
}

/** A process that has just stored the end of its run. */
function finishing(dir: string, { fs }: Disk, onError?: (error: Error) => void): Peer {
  const peer = new Peer(dir, undefined, { fs, ...(onError && { onError }) }).acquire();
  peer.append('a');
  peer.finish(COMPLETE);
  return peer;
}

describe('the ends of runs', () => {
  test('are forced to disk together, a little later', async () => {
    const disk = new Disk();
    const peer = finishing(temporaryDirectory(), disk);
    for (let n = 0; n < 20; n++) {
      peer.run = newRunId();
      peer.acquire().finish(COMPLETE);
    }
    expect(disk.syncs).toBe(0);
    await expect.poll(() => disk.syncs).toBe(1);
    await pause(2 * SYNC_AFTER_MS);
    expect(disk).toMatchObject({ syncs: 1, last_syncs: 0 });
  });

  test('are forced to disk at once when the log is closed', async () => {
    const disk = new Disk();
    finishing(temporaryDirectory(), disk).directory.close();
    expect(disk).toMatchObject({ syncs: 0, last_syncs: 1 });
    await pause(2 * SYNC_AFTER_MS);
    expect(disk.syncs).toBe(0);
  });
});

describe('a write that was cut short at any byte by the death of its process', () => {
  test('is no damage, and hides nothing that is written later, by whichever process', () => {
    const dir = temporaryDirectory();
    const peer = new Peer(dir).acquire();
    peer.append('a');
    const path = join(dir, FIRST);
    const whole = node_fs.readFileSync(path);
    peer.append('b');
    const line = node_fs.readFileSync(path).subarray(whole.length);
    for (let length = 0; length < line.length - 1; length++) {
      node_fs.writeFileSync(path, Buffer.concat([whole, line.subarray(0, length)]));
      const next = new Peer(dir, peer.run).acquire(1);
      expect(next.append('c')).toBeUndefined();
      const image = readRun(dir, peer.run);
      expect(image).not.toHaveProperty('damage');
      expect(textOf(image.records)).toBe('ac');
    }
  });
});

describe('segments', () => {
  const SMALL = { segment_bytes: 2000 } as const;

  test('follow one another for all processes, which see the same', () => {
    const dir = temporaryDirectory();
    const run = newRunId();
    const peers = [
      new Peer(dir, newRunId(), SMALL),
      new Peer(dir, newRunId(), SMALL),
      new Peer(dir, run, SMALL),
    ];
    for (const peer of peers) peer.acquire();
    for (let round = 0; round < 60; round++)
      for (const peer of peers) expect(peer.append(`${round} `)).toBeUndefined();
    expect(node_fs.readdirSync(dir).length).toBeGreaterThan(5);
    for (const peer of peers) {
      const image = readRun(dir, peer.run);
      expect(image).not.toHaveProperty('damage');
      expect(textOf(image.records)).toBe(Array.from({ length: 60 }, (_, round) => `${round} `).join(''));
    }
  });

  test('that were closed take nothing more: what comes late is written to the next one', () => {
    const dir = temporaryDirectory();
    let interrupt: (() => void) | undefined;
    const fs: FileSystem = {
      ...node_fs,
      writeSync: ((fd: number, content: Buffer) => {
        interrupt?.();
        interrupt = undefined;
        return node_fs.writeSync(fd, content);
      }) as typeof node_fs.writeSync,
    };
    const late = new Peer(dir, undefined, { fs }).acquire();
    const other = new Peer(dir, undefined, { segment_bytes: 200 }).acquire();
    interrupt = () => expect(other.append('x')).toBeUndefined();
    expect(late.append('a')).toBeUndefined();
    expect(node_fs.readdirSync(dir)).toEqual([segmentName(1), segmentName(2)]);
    expect(textOf(readRun(dir, late.run).records)).toBe('a');
    expect(node_fs.readFileSync(join(dir, segmentName(2)), 'utf8')).toContain(late.run);
  });

  test('whose last frame is damaged are left for the next one all the same', () => {
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    const peer = new Peer(dir, undefined, { segment_bytes: 400 }).acquire();
    for (const word of 'abcdefgh') peer.append(word);
    const path = join(dir, FIRST);
    const bytes = node_fs.readFileSync(path);
    bytes[bytes.length - 3] = 0x21;
    node_fs.writeFileSync(path, bytes);
    const next = new Peer(dir, peer.run, { onError: (error) => errors.push(error) });
    expect(next.acquire(1).append('i')).toBeUndefined();
    expect(peer.append('x')).toMatchObject({ code: 'stale' });
    expect(errors).toHaveLength(1);
    expect(next.directory.log.segment).toBeGreaterThan(1);
  });

  test('that cannot be attributed to a run when they are damaged are reported', () => {
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    const peer = new Peer(dir).acquire();
    node_fs.appendFileSync(join(dir, FIRST), `\n${'z'.repeat(200)}\n`);
    peer.directory.close();
    new Peer(dir, peer.run, { onError: (error) => errors.push(error) });
    expect(errors).toMatchObject([
      { message: expect.stringMatching(/^segment 1 of the log is damaged at byte \d+/) },
    ]);
  });

  test('that were replaced by other files take nothing more', () => {
    const dir = temporaryDirectory();
    const peer = new Peer(dir).acquire();
    node_fs.renameSync(join(dir, FIRST), join(dir, 'elsewhere'));
    node_fs.copyFileSync(join(dir, 'elsewhere'), join(dir, FIRST));
    expect(peer.append('a')).toMatchObject({ code: 'ESTALE' });
  });

  test('are private, and never reached by a symbolic link', () => {
    const dir = temporaryDirectory();
    new Peer(dir).acquire();
    expect(node_fs.statSync(join(dir, FIRST)).mode & 0o777).toBe(0o600);
    const other = temporaryDirectory();
    node_fs.symlinkSync(join(dir, FIRST), join(other, FIRST));
    expect(() => new Peer(other)).toThrow(expect.objectContaining({ code: 'ELOOP' }));
  });
});
