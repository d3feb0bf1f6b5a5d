import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FileLog } from '../../src/checkpoint/file-log.ts';
import { FileSweep } from '../../src/checkpoint/file-sweep.ts';
import type { RunId } from '../../src/checkpoint/store.ts';
import { newRunId, temporaryDirectory } from './fixtures.ts';

const NOW_MS = Date.now();
const HOUR_MS = 3_600_000;

function fileOfAge(dir: string, name: string, age_ms: number): string {
  const path = join(dir, name);
  writeFileSync(path, '');
  const at_s = (NOW_MS - age_ms) / 1000;
  utimesSync(path, at_s, at_s);
  return name;
}

/** As many passes as it takes to see every entry. */
function sweep(dir: string, ttl_ms: number, held = new Set<RunId>()): string[] {
  const swept = new FileSweep({ dir, ttl_ms });
  for (let pass = 0; pass < 5; pass++) swept.pass(NOW_MS, held);
  swept.close();
  return readdirSync(dir).sort();
}

test('runs are removed when their time is over, finished or not, and nothing else is', () => {
  const dir = temporaryDirectory();
  const kept = [
    fileOfAge(dir, `${newRunId()}.run`, HOUR_MS - 60_000),
    fileOfAge(dir, `${newRunId()}.partial`, HOUR_MS - 60_000),
    fileOfAge(dir, 'secret', 9 * HOUR_MS),
    fileOfAge(dir, 'takeovers', 9 * HOUR_MS),
    fileOfAge(dir, 'run_but-not-ours.txt', 9 * HOUR_MS),
  ];
  fileOfAge(dir, `${newRunId()}.run`, HOUR_MS + 60_000);
  fileOfAge(dir, `${newRunId()}.partial`, HOUR_MS + 60_000);
  fileOfAge(dir, `${newRunId()}.2.partial`, HOUR_MS + 60_000);
  fileOfAge(dir, `${newRunId()}.2.tmp`, HOUR_MS + 60_000);
  expect(new Set(sweep(dir, HOUR_MS))).toEqual(new Set(kept));
});

test('a run that is held is kept however long it is silent', () => {
  const dir = temporaryDirectory();
  const run = newRunId();
  const name = fileOfAge(dir, `${run}.partial`, 99 * HOUR_MS);
  expect(sweep(dir, HOUR_MS, new Set([run]))).toEqual([name]);
});

test('a run that another process touches is kept even if its time is shorter than a sweep', () => {
  const dir = temporaryDirectory();
  const running = fileOfAge(dir, `${newRunId()}.partial`, 61_000);
  fileOfAge(dir, `${newRunId()}.run`, 61_000);
  expect(sweep(dir, 1000)).toEqual([running]);
});

test('holders touch the files of all epochs of their runs', () => {
  const dir = temporaryDirectory();
  const log = new FileLog({ dir, fsync: 'never' });
  onTestFinished(() => log.close());
  const run = newRunId();
  const held = new Set([run]);
  log.acquire(1, run, 'owner');
  log.acquire(2, run, 'owner');
  expect(log.heldRuns()).toEqual(held);
  const long_ago_s = (NOW_MS - 99 * HOUR_MS) / 1000;
  for (const name of [`${run}.partial`, `${run}.2.partial`])
    utimesSync(join(dir, name), long_ago_s, long_ago_s);
  log.touch(NOW_MS / 1000);
  expect(new Set(sweep(dir, HOUR_MS))).toEqual(new Set([`${run}.partial`, `${run}.2.partial`, 'takeovers']));
});

test('a pass looks at a bounded number of entries and the next one goes on from there', () => {
  const dir = temporaryDirectory();
  const count = 1100;
  for (let i = 0; i < count; i++) fileOfAge(dir, `${newRunId()}.run`, 2 * HOUR_MS);
  const swept = new FileSweep({ dir, ttl_ms: HOUR_MS });
  const left = [1, 2, 3].map(() => {
    swept.pass(NOW_MS, new Set());
    return readdirSync(dir).length;
  });
  swept.close();
  expect(left).toEqual([count - 500, count - 1000, 0]);
  expect(existsSync(dir)).toBe(true);
});
