import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import type { NoteKey } from '../../../src/checkpoint/notes.ts';
import { createSeal } from '../../../src/checkpoint/seal.ts';
import { COMPLETE, newRunId, OWNER, SMALL_RUN, temporaryDirectory } from '../fixtures.ts';

const [OLD_KEY, NEW_KEY] = ['old '.repeat(8), 'new '.repeat(8)] as [string, string];
const NOTE: NoteKey = { kind: 'thread', name: 'a thread' };
const HOUR_MS = 3_600_000;

function openWith(dir: string, keys: readonly string[]): FileStore {
  const onError = (error: Error) => expect.unreachable(error.message);
  const options = { dir, ttl_ms: HOUR_MS, lease_ms: 3000, onError } as const;
  const store = new FileStore({ ...options, seal: createSeal(keys) });
  onTestFinished(() => store.close());
  return store;
}

const contentOf = (dir: string): string =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'))
    .join('\n');

test('nothing of what is said can be read in the files', async () => {
  const dir = temporaryDirectory();
  const store = openWith(dir, [OLD_KEY]);
  const [header, ...records] = SMALL_RUN as [(typeof SMALL_RUN)[0], ...typeof SMALL_RUN];
  const request = { ...header, header: { ...header.header, body: '{"messages":"secret"}' } } as typeof header;
  const lease = await store.acquire(newRunId(), OWNER);
  await store.append(lease, [request, ...records]);
  await store.notes.put(OWNER, NOTE, 'the tail of it', HOUR_MS);
  for (const secret of ['world', 'Paris', 'gpt-test', 'messages', 'the tail']) {
    expect(contentOf(dir)).not.toContain(secret);
  }
  await store.finish(lease, COMPLETE);
  expect((await store.read(lease.run, OWNER, 0))?.records).toEqual([request, ...records]);
  expect(await store.notes.consume(OWNER, NOTE)).toBe('the tail of it');
});

test('runs and notes outlive a change of keys, and a run that is taken over is sealed anew', async () => {
  const dir = temporaryDirectory();
  const run = newRunId();
  const before = openWith(dir, [OLD_KEY]);
  await before.append(await before.acquire(run, OWNER), SMALL_RUN.slice(0, 2));
  await before.notes.put(OWNER, NOTE, 'kept', HOUR_MS);
  await before.close();

  const during = openWith(dir, [NEW_KEY, OLD_KEY]);
  expect(await during.notes.get(OWNER, NOTE)).toBe('kept');
  const lease = await during.acquire(run, OWNER, 1);
  await during.append(lease, SMALL_RUN.slice(2));
  expect((await during.read(run, OWNER, 0))?.records).toEqual(SMALL_RUN);
  await during.finish(lease, COMPLETE);
  await during.close();

  const after = openWith(dir, [NEW_KEY]);
  expect(await after.read(run, OWNER, 0)).toMatchObject({ status: 'complete', records: SMALL_RUN });
});
