import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { FileSystem } from '../../../src/checkpoint/file/private-directory.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { COMPLETE, newRunId, OWNER, temporaryDirectory } from '../fixtures.ts';
import { Peer } from './file-peer.ts';

const LEASE_MS = 3000;
const REPLICA = 'ab12';

/** A directory in which one replica holds runs while another one looks for orphans. */
class Situation {
  readonly dir = temporaryDirectory();
  readonly holder: Peer;
  readonly calls: string[] = [];
  readonly #other: Peer;

  constructor() {
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
    this.holder = new Peer(this.dir, newRunId(), { replica: REPLICA, lease_ms: LEASE_MS });
    this.#other = new Peer(this.dir, newRunId(), { fs: counted, lease_ms: LEASE_MS });
    this.beat(0);
  }

  /** Sets the replica's last heartbeat to this long ago. */
  beat(silent_ms: number): void {
    const path = join(this.dir, `replica-${REPLICA}.alive`);
    if (!node_fs.existsSync(path)) node_fs.writeFileSync(path, '');
    const at_s = (Date.now() - silent_ms) / 1000;
    node_fs.utimesSync(path, at_s, at_s);
  }

  acquire(run: RunId, after = 0): void {
    this.holder.call('acquire', { run, owner: OWNER, after });
  }

  find(limit = 100): Set<string> {
    const orphans = this.#other.call('orphans', { limit });
    return new Set(orphans.map(({ run, epoch }) => `${run} ${epoch}`));
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
  situation.acquire(run);
  expect(situation.find()).toEqual(new Set());
  situation.holder.call('release', { run, epoch: 1, seq: -1 });
  expect(situation.find()).toEqual(new Set([`${run} 2`]));
  situation.acquire(run, 2);
  expect(situation.find()).toEqual(new Set());
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toEqual(new Set([`${run} 3`]));
});

test('a finished run is none', async () => {
  const situation = new Situation();
  const run = newRunId();
  situation.acquire(run);
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toEqual(new Set([`${run} 1`]));
  situation.holder.call('finish', { run, owner: OWNER, epoch: 1, end: COMPLETE, seq: -1 });
  expect(situation.find()).toEqual(new Set());
});

test('orphans are remembered without being read again', () => {
  const situation = new Situation();
  for (let i = 0; i < 20; i++) situation.acquire(newRunId());
  situation.beat(LEASE_MS + 100);
  expect(situation.find()).toHaveProperty('size', 20);
  situation.calls.length = 0;
  expect(situation.find()).toHaveProperty('size', 20);
  // The search checks the log once, and the heartbeat once per replica, however many runs it holds.
  expect(situation.calls).toEqual(['statSync', 'statSync']);
});

test('no more are given than were asked for', () => {
  const situation = new Situation();
  for (let i = 0; i < 20; i++) situation.acquire(newRunId());
  situation.beat(LEASE_MS + 100);
  expect(situation.find(7)).toHaveProperty('size', 7);
});
