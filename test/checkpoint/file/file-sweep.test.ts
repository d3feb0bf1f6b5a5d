import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FileDirectory } from '../../../src/checkpoint/file/file-directory.ts';
import { FileLog } from '../../../src/checkpoint/file/file-log.ts';
import { FileSweep } from '../../../src/checkpoint/file/file-sweep.ts';
import type { FinalStatus } from '../../../src/checkpoint/store.ts';
import { newRunId, OWNER, temporaryDirectory } from '../fixtures.ts';

const HOUR_MS = 3_600_000;
const LEASE_MS = 3000;
const REPLICA = 'ab12';

function fileOfAge(dir: string, name: string, age_ms: number): string {
  const path = join(dir, name);
  if (!existsSync(path)) writeFileSync(path, '');
  const at_s = (Date.now() - age_ms) / 1000;
  utimesSync(path, at_s, at_s);
  return name;
}

/** Every use of the directory makes a file that counts takeovers. */
function open(
  dir: string,
  ttl_ms: number,
  complete_ttl_ms = ttl_ms,
): { sweep: FileSweep; log: FileLog; names: () => string[] } {
  const directory = new FileDirectory(dir);
  const log = new FileLog({ directory, fsync: 'never', replica: REPLICA });
  const sweep = new FileSweep({ directory, epochs: log.epochs, ttl_ms, complete_ttl_ms, lease_ms: LEASE_MS });
  onTestFinished(() => {
    sweep.close();
    log.close();
  });
  const names = () => readdirSync(dir).filter((name) => name !== 'takeovers');
  return { sweep, log, names };
}

/** As many passes as it takes to see every entry. */
function sweepAll(dir: string, ttl_ms: number, complete_ttl_ms = ttl_ms): Set<string> {
  const { sweep, names } = open(dir, ttl_ms, complete_ttl_ms);
  for (let pass = 0; pass < 5; pass++) sweep.pass();
  return new Set(names());
}

test('runs are removed when their time is over, finished or not, and nothing else is', () => {
  const dir = temporaryDirectory();
  const kept = [
    fileOfAge(dir, `${newRunId()}.run`, HOUR_MS - 60_000),
    fileOfAge(dir, `${newRunId()}.partial`, HOUR_MS - 60_000),
    fileOfAge(dir, 'secret', 9 * HOUR_MS),
    fileOfAge(dir, 'run_but-not-ours.txt', 9 * HOUR_MS),
  ];
  fileOfAge(dir, `${newRunId()}.run`, HOUR_MS + 60_000);
  fileOfAge(dir, `${newRunId()}.partial`, HOUR_MS + 60_000);
  fileOfAge(dir, `${newRunId()}.2.partial`, HOUR_MS + 60_000);
  fileOfAge(dir, `${newRunId()}.${REPLICA}.tmp`, HOUR_MS + 60_000);
  expect(sweepAll(dir, HOUR_MS)).toEqual(new Set(kept));
});

test('complete runs are removed earlier than others, where that is asked for', async () => {
  const dir = temporaryDirectory();
  const { log } = open(dir, HOUR_MS);
  const finished = async (slot: number, status: FinalStatus, age_ms: number) => {
    const run = newRunId();
    log.acquire(slot, run, OWNER, 0);
    await log.finish(slot, { status, at_ms: 0 }, -1);
    return fileOfAge(dir, `${run}.run`, age_ms);
  };
  await finished(1, 'complete', HOUR_MS / 2 + 60_000);
  const kept = [
    await finished(2, 'complete', HOUR_MS / 2 - 60_000),
    await finished(3, 'recovered_from_partial', HOUR_MS / 2 + 60_000),
    fileOfAge(dir, `${newRunId()}.run`, HOUR_MS / 2 + 60_000),
  ];
  expect(sweepAll(dir, HOUR_MS, HOUR_MS / 2)).toEqual(new Set(kept));
});

test('a run is kept as long as its holder lives, however long it is silent', () => {
  const dir = temporaryDirectory();
  const { sweep, log, names } = open(dir, HOUR_MS);
  const run = newRunId();
  log.acquire(1, run, OWNER, 0);
  const partial = fileOfAge(dir, `${run}.partial`, 99 * HOUR_MS);
  const alive = fileOfAge(dir, `replica-${REPLICA}.alive`, 0);
  sweep.pass();
  expect(new Set(names())).toEqual(new Set([partial, alive]));
  fileOfAge(dir, alive, LEASE_MS + 1000);
  sweep.pass();
  expect(names()).toEqual([alive]);
});

test('all epochs of a run are kept as long as the latest one is', () => {
  const dir = temporaryDirectory();
  const { sweep, log, names } = open(dir, HOUR_MS);
  const run = newRunId();
  for (const after of [0, 1, 2]) log.acquire(after, run, OWNER, after);
  const files = [`${run}.partial`, `${run}.2.partial`, `${run}.3.partial`];
  for (const name of files.slice(0, 2)) fileOfAge(dir, name, 99 * HOUR_MS);
  sweep.pass();
  expect(new Set(names())).toEqual(new Set(files));
  fileOfAge(dir, files[2] as string, 99 * HOUR_MS);
  sweep.pass();
  expect(names()).toEqual([]);
});

test('a run that was released and never taken over is removed', () => {
  const dir = temporaryDirectory();
  const { sweep, log, names } = open(dir, HOUR_MS);
  const run = newRunId();
  log.acquire(1, run, OWNER, 0);
  fileOfAge(dir, `replica-${REPLICA}.alive`, 0);
  log.release(1, -1);
  for (const name of [`${run}.partial`, `${run}.2.partial`]) fileOfAge(dir, name, 2 * HOUR_MS);
  sweep.pass();
  expect(names()).toEqual([`replica-${REPLICA}.alive`]);
});

test('files of epochs are removed when their finished run exists', () => {
  const dir = temporaryDirectory();
  const run = newRunId();
  const finished = fileOfAge(dir, `${run}.run`, 0);
  fileOfAge(dir, `${run}.partial`, 0);
  fileOfAge(dir, `${run}.2.partial`, 0);
  expect(sweepAll(dir, HOUR_MS)).toEqual(new Set([finished]));
});

test('what dead processes leave behind is removed', () => {
  const dir = temporaryDirectory();
  const run = newRunId();
  const kept = [fileOfAge(dir, 'replica-01.alive', 60 * LEASE_MS), fileOfAge(dir, `${run}.01.tmp`, 60_000)];
  fileOfAge(dir, 'replica-02.alive', HOUR_MS);
  fileOfAge(dir, 'replica-02.check', HOUR_MS);
  fileOfAge(dir, `${run}.02.tmp`, HOUR_MS);
  expect(sweepAll(dir, 99 * HOUR_MS)).toEqual(new Set(kept));
});

test('a pass looks at a bounded number of entries and the next one continues from there', () => {
  const dir = temporaryDirectory();
  const { sweep, names } = open(dir, HOUR_MS);
  const count = 1100;
  for (let i = 0; i < count; i++) fileOfAge(dir, `${newRunId()}.run`, 2 * HOUR_MS);
  const left = [1, 2, 3].map(() => {
    sweep.pass();
    return names().length;
  });
  // One of the entries is the count of takeovers, wherever in the directory that is.
  expect(left[0]).toBeLessThanOrEqual(count - 499);
  expect(left[0]).toBeGreaterThanOrEqual(count - 500);
  expect(left[2]).toBe(0);
});
