import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { segmentName } from '../../../src/checkpoint/file/names.ts';
import { decodeRun } from '../../../src/checkpoint/file/run-image.ts';
import { encodeRecordBody } from '../../../src/checkpoint/record-codec.ts';
import { encodeEntry, RUNS_INDEXED_MAX } from '../../../src/checkpoint/run-index.ts';
import type { FinalStatus, RunId } from '../../../src/checkpoint/store.ts';
import { HEADER_RECORD, newRunId, OWNER, temporaryDirectory, textOf } from '../fixtures.ts';
import { Peer, type PeerOptions, readRun, refusalOf } from './file-peer.ts';
import { InterruptedFileSystem } from './interrupted-file-system.ts';

const HOUR_MS = 3_600_000;
const LEASE_MS = 3000;
const REPLICA = 'ab12';

/** A replica with a fake clock that sends heartbeats only on request. */
function open(dir: string, options: PeerOptions = {}): Peer {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  return new Peer(dir, newRunId(), { ttl_ms: HOUR_MS, lease_ms: LEASE_MS, replica: REPLICA, ...options });
}

const wait = (ms: number) => vi.setSystemTime(Date.now() + ms);

function beat(dir: string, replica = REPLICA): void {
  const path = join(dir, `replica-${replica}.alive`);
  writeFileSync(path, '');
  utimesSync(path, Date.now() / 1000, Date.now() / 1000);
}

const isKnown = (peer: Peer, run: RunId): boolean => peer.call('read', { run }) !== undefined;

function finished(peer: Peer, status: FinalStatus): RunId {
  const run = newRunId();
  const call = { run, epoch: 1, owner: OWNER };
  peer.call('acquire', { run, owner: OWNER, after: 0 });
  peer.call('append', [run, 1, encodeEntry(run, 1), encodeRecordBody(HEADER_RECORD)]);
  peer.call('finish', { ...call, end: { status, at_ms: 0 }, seq: 0 });
  return run;
}

test('runs are forgotten when their time is over, finished or not, by a process that starts later too', async () => {
  const dir = temporaryDirectory();
  const peer = open(dir).acquire();
  const old = [peer.run, finished(peer, 'complete'), finished(peer, 'failed')];
  wait(HOUR_MS / 2);
  const kept = [finished(peer, 'complete'), finished(peer, 'failed')];
  wait(HOUR_MS / 2 + 1000);
  for (const each of [peer, open(dir)]) {
    each.directory.keep();
    expect(old.map((run) => isKnown(each, run))).toEqual([false, false, false]);
    expect(kept.map((run) => isKnown(each, run))).toEqual([true, true]);
    expect(each.call('indexed_runs', { owner: OWNER })).toEqual(kept.map((run) => encodeEntry(run, 1)));
  }
});

test('complete runs are forgotten earlier than others, where that is asked for', async () => {
  const dir = temporaryDirectory();
  const peer = open(dir, { complete_ttl_ms: HOUR_MS / 2 });
  const [complete, partial] = [finished(peer, 'complete'), finished(peer, 'recovered_from_partial')];
  wait(HOUR_MS / 2 + 1000);
  const later = finished(peer, 'complete');
  peer.directory.keep();
  expect([complete, partial, later].map((run) => isKnown(peer, run))).toEqual([false, true, true]);
});

test('a run is kept as long as its holder lives, however long it is silent', () => {
  const dir = temporaryDirectory();
  const peer = open(dir).acquire();
  wait(99 * HOUR_MS);
  beat(dir);
  peer.directory.keep();
  expect(isKnown(peer, peer.run)).toBe(true);
  wait(LEASE_MS + 1000);
  peer.directory.keep();
  expect(isKnown(peer, peer.run)).toBe(false);
});

test('a run that was released and never taken over is forgotten', () => {
  const dir = temporaryDirectory();
  const peer = open(dir).acquire();
  peer.release();
  wait(2 * HOUR_MS);
  beat(dir);
  peer.directory.keep();
  expect(isKnown(peer, peer.run)).toBe(false);
});

test('signs of life that dead processes leave behind are removed, and nothing else is', () => {
  const dir = temporaryDirectory();
  const peer = open(dir);
  for (const name of ['replica-02.alive', 'replica-02.check', 'secret']) {
    writeFileSync(join(dir, name), '');
    utimesSync(join(dir, name), 1, 1);
  }
  beat(dir, '01');
  wait(60 * LEASE_MS);
  peer.directory.keep();
  expect(readdirSync(dir).sort()).toEqual([segmentName(1), 'replica-01.alive', 'secret']);
});

/** Finishes runs until they fill this many segments. */
async function fill(peer: Peer, segments: number): Promise<RunId[]> {
  const runs: RunId[] = [];
  const last = peer.directory.log.segment + segments;
  while (peer.directory.log.segment < last) runs.push(finished(peer, 'complete'));
  return runs;
}

test('segments in which everything is forgotten are removed, the oldest first', async () => {
  const dir = temporaryDirectory();
  const peer = open(dir, { segment_bytes: 4000 });
  await fill(peer, 3);
  wait(HOUR_MS + 1000);
  const kept = await fill(peer, 1);
  peer.directory.keep();
  expect(existsSync(join(dir, segmentName(1)))).toBe(false);
  expect(existsSync(join(dir, segmentName(2)))).toBe(false);
  expect(readdirSync(dir).length).toBeLessThanOrEqual(3);
  for (const each of [peer, open(dir)]) for (const run of kept) expect(isKnown(each, run)).toBe(true);
});

test('what little is left of a segment is copied, with its time, and read by every process', async () => {
  const dir = temporaryDirectory();
  const peer = open(dir, { segment_bytes: 4000, complete_ttl_ms: HOUR_MS / 2 });
  const reader = open(dir, { replica: 'cd34' });
  const digest = 'd'.repeat(64);
  const left = finished(peer, 'failed');
  peer.call('put_note', { digest, text: '"kept"', expires_at_ms: Date.now() + 2 * HOUR_MS });
  await fill(peer, 2);
  expect(isKnown(reader, left)).toBe(true);
  wait(HOUR_MS / 2 + 1000);
  finished(peer, 'complete');
  peer.directory.keep();
  expect(existsSync(join(dir, segmentName(1)))).toBe(false);
  for (const each of [reader, peer, open(dir)]) {
    expect(each.call('read', { run: left })).toMatchObject({ holder: { state: 'released' } });
    expect(each.call('get_note', { digest })).toBe('"kept"');
    expect(each.call('indexed_runs', { owner: OWNER })).toContain(encodeEntry(left, 1));
  }
  expect(readRun(dir, left)).toMatchObject({ end: { status: 'failed' }, seq: 0 });
  wait(HOUR_MS / 2);
  for (const each of [reader, peer, open(dir)]) {
    each.directory.keep();
    expect(isKnown(each, left)).toBe(false);
  }
});

test('a run that was copied can be purged, and nothing of it is left anywhere', async () => {
  const dir = temporaryDirectory();
  const peer = open(dir, { segment_bytes: 4000, complete_ttl_ms: HOUR_MS / 2 });
  const left = finished(peer, 'failed');
  await fill(peer, 2);
  wait(HOUR_MS / 2 + 1000);
  finished(peer, 'complete');
  peer.directory.keep();
  peer.call('purge', { run: left, owner: OWNER });
  for (const each of [peer, open(dir)]) expect(isKnown(each, left)).toBe(false);
});

test('a run under way does not keep its segment: it is copied, and goes on at the end of the log', async () => {
  const dir = temporaryDirectory();
  const peer = open(dir, { segment_bytes: 4000 }).acquire();
  peer.append('a');
  await fill(peer, 3);
  wait(HOUR_MS + 1000);
  beat(dir);
  peer.directory.keep();
  expect(existsSync(join(dir, segmentName(1)))).toBe(false);
  expect(peer.append('b')).toBeUndefined();
  expect(textOf(readRun(dir, peer.run).records)).toBe('ab');
  const successor = new Peer(dir, peer.run);
  successor.acquire(1);
  expect(peer.append('x')).toMatchObject({ code: 'stale' });
  successor.finish({ status: 'complete', at_ms: 1 });
  expect(readRun(dir, peer.run)).toMatchObject({ epoch: 2, end: { status: 'complete' }, seq: 2 });
});

test('nothing that a run says while another process copies it is lost, at any moment', async () => {
  for (let at_call = 1; ; at_call++) {
    const dir = temporaryDirectory();
    const peer = open(dir, { segment_bytes: 4000 }).acquire();
    peer.append('a');
    await fill(peer, 3);
    wait(HOUR_MS + 1000);
    beat(dir);
    const interruption = new InterruptedFileSystem(at_call, () => {
      peer.append('b');
    });
    const upkeep = new Peer(dir, newRunId(), { lease_ms: LEASE_MS, fs: interruption.fs });
    interruption.armed = true;
    upkeep.directory.keep();
    interruption.armed = false;
    if (!interruption.interrupted) {
      expect(at_call).toBeGreaterThan(10);
      return;
    }
    for (const each of [peer, upkeep, new Peer(dir)]) {
      const found = each.call('read', { run: peer.run });
      expect(textOf(decodeRun(found?.lines ?? Buffer.alloc(0), peer.run, undefined)?.records ?? [])).toBe(
        'ab',
      );
    }
    expect(peer.append('c')).toBeUndefined();
    expect(textOf(readRun(dir, peer.run).records)).toBe('abc');
  }
});

test('a directory forgets its oldest finished runs when there are too many of them, and none under way', async () => {
  const dir = temporaryDirectory();
  const errors: string[] = [];
  const peer = open(dir, { runs_max: 3, onError: ({ message }) => errors.push(message) }).acquire();
  const runs: RunId[] = [];
  for (let count = 0; count < 4; count++) runs.push(finished(peer, 'complete'));
  for (let pass = 0; pass < 2; pass++) peer.directory.keep();
  expect([peer.run, ...runs].map((run) => isKnown(peer, run))).toEqual([true, false, false, true, true]);
  expect(errors).toEqual([expect.stringContaining('the directory keeps 3 runs at most')]);
});

test('a run that another process has forgotten is gone for all, and cannot be taken over', async () => {
  const dir = temporaryDirectory();
  const away = open(dir, { replica: 'cd34' }).acquire();
  const peer = open(dir, { segment_bytes: 4000 });
  await fill(peer, 2);
  const run = finished(peer, 'failed');
  await fill(peer, 2);
  away.directory.log.catchUp();
  for (const each of [run, away.run]) peer.directory.state.runs.drop(each);
  wait(HOUR_MS + 1000);
  finished(peer, 'complete');
  peer.directory.keep();
  expect(isKnown(away, run)).toBe(false);
  expect(refusalOf(() => away.call('acquire', { run: away.run, owner: OWNER, after: 1 }))).toMatchObject({
    code: 'foreign',
  });
});

test('an owner has the latest thousand runs listed', async () => {
  const peer = open(temporaryDirectory());
  const runs: RunId[] = [];
  for (let count = 0; count < RUNS_INDEXED_MAX + 2; count++) runs.push(finished(peer, 'complete'));
  expect(peer.call('indexed_runs', { owner: OWNER })).toEqual(
    runs.slice(2).map((run) => encodeEntry(run, 1)),
  );
  expect(isKnown(peer, runs[0] as RunId)).toBe(true);
});

test('a process that has looked elsewhere while segments were removed goes on with the rest', async () => {
  const dir = temporaryDirectory();
  const away = open(dir, { replica: 'cd34' });
  const peer = open(dir, { segment_bytes: 4000 });
  await fill(peer, 3);
  wait(HOUR_MS + 1000);
  const kept = await fill(peer, 1);
  peer.directory.keep();
  for (const run of kept) expect(isKnown(away, run)).toBe(true);
  expect(away.acquire().append('a')).toBeUndefined();
  expect(textOf(readRun(dir, away.run).records)).toBe('a');
});
