import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FileDirectory } from '../../../src/checkpoint/file/file-directory.ts';
import { FileRunIndex } from '../../../src/checkpoint/file/file-run-index.ts';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { decodeEntry, encodeEntry, RUNS_INDEXED_MAX } from '../../../src/checkpoint/run-index.ts';
import type { Owner, RunId } from '../../../src/checkpoint/store.ts';
import {
  COMPLETE,
  HEADER_RECORD,
  newRunId,
  OWNER,
  STRANGER,
  temporaryDirectory,
  textRecord,
} from '../fixtures.ts';

function open(dir: string = temporaryDirectory()): FileStore {
  const store = new FileStore({
    dir,
    fsync: 'never',
    ttl_ms: 3_600_000,
    lease_ms: 1000,
    onError: (error) => expect.unreachable(error.message),
  });
  onTestFinished(() => store.close());
  return store;
}

async function begin(store: FileStore) {
  const lease = await store.acquire(newRunId(), OWNER);
  await store.append(lease, [HEADER_RECORD]);
  return lease;
}

/** The index as one process has it, of runs that are in `dir`. */
function indexIn(dir: string) {
  const runs = new FileDirectory(dir);
  const index = new FileRunIndex({ directory: runs.within('index'), runs });
  onTestFinished(() => index.close());
  return index;
}

function runFile(dir: string, ending: 'run' | 'partial' | '2.partial'): RunId {
  const run = newRunId();
  writeFileSync(join(dir, `${run}.${ending}`), '');
  return run;
}

const ownerAt = (number: number): Owner => number.toString(16).padStart(64, '0') as Owner;

test('entries are private, and lie in a directory of their owner', async () => {
  const dir = temporaryDirectory();
  const store = open(dir);
  const { run } = await begin(store);
  const [{ entry } = { entry: '' }] = await store.index.list(OWNER);
  expect(readdirSync(join(dir, 'index'))).toEqual([OWNER]);
  expect(readdirSync(join(dir, 'index', OWNER))).toEqual([entry]);
  expect(decodeEntry(entry)?.run).toBe(run);
  expect(statSync(join(dir, 'index', OWNER)).mode & 0o777).toBe(0o700);
  expect(statSync(join(dir, 'index', OWNER, entry)).mode & 0o777).toBe(0o600);
});

test('a file that is no entry is left out, and left alone', async () => {
  const dir = temporaryDirectory();
  const store = open(dir);
  const { run } = await begin(store);
  for (const name of ['damaged', `1.${run}.x`, '.1']) writeFileSync(join(dir, 'index', OWNER, name), '');
  expect((await store.index.list(OWNER)).map((found) => found.run)).toEqual([run]);
  indexIn(dir).sweep();
  expect(readdirSync(join(dir, 'index', OWNER))).toHaveLength(4);
});

test('a run whose entry cannot be written is stored all the same', async () => {
  const dir = temporaryDirectory();
  const store = open(dir);
  writeFileSync(join(dir, 'index', OWNER), 'in the way');
  const lease = await begin(store);
  expect(await store.append(lease, [textRecord(0, 'a')])).toBe(1);
  await store.finish(lease, COMPLETE);
  expect(await store.read(lease.run, OWNER, 0)).toMatchObject({ status: 'complete', seq: 1 });
  await expect(store.index.list(OWNER)).rejects.toThrow('ENOTDIR');
});

test('a directory that was removed meanwhile is made again', async () => {
  const dir = temporaryDirectory();
  const store = open(dir);
  await begin(store);
  await store.index.list(OWNER);
  rmSync(join(dir, 'index'), { recursive: true });
  const { run } = await begin(store);
  expect((await store.index.list(OWNER)).map((found) => found.run)).toEqual([run]);
});

test('the sweep removes entries whose runs are gone, then what is empty, and nothing else', () => {
  const dir = temporaryDirectory();
  mkdirSync(join(dir, 'index'));
  const index = indexIn(dir);
  const kept = [runFile(dir, 'run'), runFile(dir, 'partial')].map((run) => encodeEntry(run, 1));
  for (const entry of [...kept, encodeEntry(newRunId(), 1)]) index.add(OWNER, entry);
  index.add(STRANGER, encodeEntry(newRunId(), 1));
  writeFileSync(join(dir, 'index', 'not-an-owner'), '');
  for (let pass = 0; pass < 3; pass++) index.sweep();
  expect(new Set(index.list(OWNER))).toEqual(new Set(kept));
  expect(new Set(readdirSync(join(dir, 'index')))).toEqual(new Set([OWNER, 'not-an-owner']));
});

test('every pass of the sweep is bounded, and all owners have their turn', () => {
  const dir = temporaryDirectory();
  mkdirSync(join(dir, 'index'));
  const index = indexIn(dir);
  const owners = Array.from({ length: 600 }, (_, number) => ownerAt(number));
  for (const owner of owners) index.add(owner, encodeEntry(newRunId(), 1));
  const left = () => owners.filter((owner) => existsSync(join(dir, 'index', owner))).length;
  index.sweep();
  expect(left()).toBeGreaterThan(300);
  for (let pass = 0; pass < 6; pass++) index.sweep();
  expect(left()).toBe(0);
});

test('what is too much is removed by a process that has just started, too', () => {
  const dir = temporaryDirectory();
  mkdirSync(join(dir, 'index'));
  const entries = Array.from({ length: RUNS_INDEXED_MAX + 20 }, (_, at_ms) => encodeEntry(newRunId(), at_ms));
  mkdirSync(join(dir, 'index', OWNER));
  for (const entry of entries) writeFileSync(join(dir, 'index', OWNER, entry), '');
  const latest = encodeEntry(newRunId(), 5000);
  indexIn(dir).add(OWNER, latest);
  const left = readdirSync(join(dir, 'index', OWNER));
  expect(left).toHaveLength(RUNS_INDEXED_MAX);
  expect(new Set(left)).toEqual(new Set([...entries.slice(21), latest]));
});
