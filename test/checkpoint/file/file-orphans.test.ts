import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FileDirectory } from '../../../src/checkpoint/file/file-directory.ts';
import { FileLog } from '../../../src/checkpoint/file/file-log.ts';
import { FileOrphans } from '../../../src/checkpoint/file/file-orphans.ts';
import type { FileSystem } from '../../../src/checkpoint/file/file-system.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { COMPLETE, newRunId, OWNER, temporaryDirectory } from '../fixtures.ts';

const LEASE_MS = 3000;
const REPLICA = 'ab12';

/** A directory in which one replica holds runs, and another one looks for orphans. */
class Situation {
  readonly dir = temporaryDirectory();
  readonly log: FileLog;
  readonly orphans: FileOrphans;
  readonly calls: string[] = [];
  #slots = 0;

  constructor(candidates_max = 10_000) {
    const counted = Object.fromEntries(
      Object.entries(node_fs).map(([name, call]) => [
        name,
        typeof call !== 'function'
          ? call
          : (...parameters: unknown[]) => {
              this.calls.push(name);
              return (call as (...all: unknown[]) => unknown)(...parameters);
            },
      ]),
    ) as unknown as FileSystem;
    const directory = new FileDirectory(this.dir);
    this.log = new FileLog({ directory, fsync: 'never', replica: REPLICA });
    const { epochs } = this.log;
    const counting = new FileDirectory(this.dir, counted);
    this.orphans = new FileOrphans({ directory: counting, epochs, lease_ms: LEASE_MS, candidates_max });
    onTestFinished(() => {
      this.orphans.close();
      this.log.close();
    });
    this.beat(0);
  }

  /** The replica's last sign of life was so long ago. */
  beat(silent_ms: number): void {
    const path = join(this.dir, `replica-${REPLICA}.alive`);
    if (!node_fs.existsSync(path)) node_fs.writeFileSync(path, '');
    const at_s = (Date.now() - silent_ms) / 1000;
    node_fs.utimesSync(path, at_s, at_s);
  }

  /** Returns the slot. */
  acquire(run: RunId, after = 0): number {
    this.log.acquire(++this.#slots, run, OWNER, after);
    return this.#slots;
  }

  find(limit = 100): Set<string> {
    return new Set(this.orphans.find(limit).map(({ run, epoch }) => `${run} ${epoch}`));
  }
}

test('runs are orphans as soon as their holder is silent for longer than a lease', () => {
  const situation = new Situation();
  const runs = [newRunId(), newRunId()];
  for (const run of runs) situation.acquire(run);
  expect(situation.find()).toEqual(new Set());
  situation.beat(LEASE_MS - 1000);
  expect(situation.find()).toEqual(new Set());
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toEqual(new Set(runs.map((run) => `${run} 1`)));
  situation.beat(0);
  expect(situation.find()).toEqual(new Set());
});

test('a sign of life from the future, as a clock that was set back leaves it, is none', () => {
  const situation = new Situation();
  const run = newRunId();
  situation.acquire(run);
  situation.beat(-LEASE_MS - 1000);
  expect(situation.find()).toEqual(new Set([`${run} 1`]));
});

test('a run is what its latest epoch says', () => {
  const situation = new Situation();
  const run = newRunId();
  const first = situation.acquire(run);
  expect(situation.find()).toEqual(new Set());
  situation.log.release(first, -1);
  expect(situation.find()).toEqual(new Set([`${run} 2`]));
  situation.acquire(run, 2);
  expect(situation.find()).toEqual(new Set());
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toEqual(new Set([`${run} 3`]));
});

test('a finished run is none, whatever files of its epochs are left', async () => {
  const situation = new Situation();
  const run = newRunId();
  const slot = situation.acquire(run);
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toEqual(new Set([`${run} 1`]));
  await situation.log.finish(slot, COMPLETE, -1);
  expect(situation.find()).toEqual(new Set());
  node_fs.copyFileSync(join(situation.dir, `${run}.run`), join(situation.dir, `${run}.partial`));
  expect(situation.find()).toEqual(new Set());
});

test('orphans are remembered without being read again', () => {
  const situation = new Situation();
  for (let i = 0; i < 20; i++) situation.acquire(newRunId());
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toHaveProperty('size', 20);
  situation.calls.length = 0;
  expect(situation.find()).toHaveProperty('size', 20);
  expect(situation.calls.filter((call) => call.startsWith('read') || call === 'openSync')).toEqual([]);
  // The signs of life of a replica are looked at once, however many runs it had.
  expect(situation.calls.filter((call) => call === 'statSync')).toHaveLength(1);
});

test('no more are given than were asked for', () => {
  const situation = new Situation();
  for (let i = 0; i < 20; i++) situation.acquire(newRunId());
  situation.beat(LEASE_MS + 100);
  expect(situation.find(7)).toHaveProperty('size', 7);
});

test('a call looks into a bounded number of runs, and the next one continues from there', () => {
  const situation = new Situation();
  for (let i = 0; i < 700; i++) situation.acquire(newRunId());
  situation.beat(LEASE_MS + 100);
  expect(situation.find(1000)).toHaveProperty('size', 500);
  expect(situation.find(1000)).toHaveProperty('size', 700);
});

test('runs that came to their end do not keep others from being found', async () => {
  const situation = new Situation(5);
  for (let i = 0; i < 20; i++) {
    const slots = Array.from({ length: 5 }, () => situation.acquire(newRunId()));
    situation.find();
    for (const slot of slots) await situation.log.finish(slot, COMPLETE, -1);
    situation.find();
  }
  const run = newRunId();
  situation.acquire(run);
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toEqual(new Set([`${run} 1`]));
});
