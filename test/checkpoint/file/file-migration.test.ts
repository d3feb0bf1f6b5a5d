import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { encodeFrame } from '../../../src/checkpoint/file/frame.ts';
import { encodeRecordBody } from '../../../src/checkpoint/record-codec.ts';
import { createProofs, createSeal, type Seal } from '../../../src/checkpoint/seal.ts';
import {
  COMPLETE,
  HEADER_RECORD,
  newRunId,
  OWNER,
  SEALING_KEY,
  temporaryDirectory,
  textOf,
  textRecord,
} from '../fixtures.ts';
import { segmentIn } from './damaged-run.ts';

const HUNDRED_YEARS_MS = 3_155_760_000_000;
const SECRET = 'a secret of the deployment';
const NOTE = { kind: 'thread', name: 'a thread' } as const;
/** Both segments in `before-proofs` contain these runs, as written by the last version without proofs. */
const [FINISHED, UNDER_WAY] = ['run_AAAAAAAAAAAAAAAAAAAAAA', 'run_BBBBBBBBBBBBBBBBBBBBBB'] as const;
const TEXT = 'Grüße 🙂, world';

const SEALS: Record<string, (accepts: boolean) => Seal> = {
  plain: (accepts) => createProofs(SECRET, accepts),
  sealed: (accepts) => createSeal([SEALING_KEY], accepts),
};

function directoryOf(name: string): string {
  const dir = temporaryDirectory();
  writeFileSync(segmentIn(dir), readFileSync(new URL(`before-proofs/${name}.txt`, import.meta.url)));
  return dir;
}

function openIn(dir: string, seal: Seal) {
  const errors: string[] = [];
  const onError = ({ message }: Error) => errors.push(message);
  const store = new FileStore({
    dir,

    ttl_ms: HUNDRED_YEARS_MS,
    lease_ms: 100,
    seal,
    onError,
  });
  onTestFinished(() => store.close());
  return { store, errors };
}

describe.each(Object.entries(SEALS))('a %s directory from before there were proofs', (name, sealed) => {
  test('is refused run by run and note by note, and the log says what to do', async () => {
    const { store, errors } = openIn(directoryOf(name), sealed(false));
    expect(await store.read(FINISHED, OWNER, 0)).toBeNull();
    await expect(store.acquire(UNDER_WAY, OWNER, 1)).rejects.toThrow(/foreign/);
    expect(await store.notes.get(OWNER, NOTE)).toBeUndefined();
    expect(errors).toEqual([
      expect.stringMatching(/the opening line is without a proof.*see checkpoint\.unproven/),
      expect.stringMatching(/thread note .* without a proof/),
    ]);
    expect(await store.notes.claim(OWNER, NOTE, 'new', 1000)).toBe('new');
  });

  test('is read where that is accepted, and what is stored from then on is proven', async () => {
    const dir = directoryOf(name);
    const { store, errors } = openIn(dir, sealed(true));
    expect(await store.read(FINISHED, OWNER, 0)).toMatchObject({ status: 'complete', seq: 3 });
    expect(await store.notes.get(OWNER, NOTE)).toBe('kept');
    const lease = await store.acquire(UNDER_WAY, OWNER, 1);
    await store.append(lease, [textRecord(3, '!')]);
    await store.finish(lease, COMPLETE);
    const stored = await store.read(UNDER_WAY, OWNER, 0);
    expect(stored).toMatchObject({ status: 'complete', seq: 4 });
    expect(textOf(stored?.records ?? [])).toBe(`${TEXT}!`);
    const fresh = await store.acquire(newRunId(), OWNER);
    await store.append(fresh, [HEADER_RECORD]);
    expect(errors).toEqual([]);
    await store.close();
    const after = openIn(dir, sealed(false)).store;
    expect(await after.read(fresh.run, OWNER, 0)).toMatchObject({ records: [HEADER_RECORD] });
    // The takeover has not made the older records authentic.
    expect(await after.read(UNDER_WAY, OWNER, 0)).toBeNull();
  });

  test('takes no plain record into a run that is proven, not even then', async () => {
    const dir = directoryOf(name);
    const { store } = openIn(dir, sealed(true));
    const { run } = await store.acquire(newRunId(), OWNER);
    await store.close();
    const planted = encodeFrame('r', run, 1, encodeRecordBody(HEADER_RECORD));
    writeFileSync(segmentIn(dir), `\n${planted}`, { flag: 'a' });
    const after = openIn(dir, sealed(true));
    expect(await after.store.read(run, OWNER, 0)).toMatchObject({ records: [], damage: { record: 0 } });
    expect(after.errors).toEqual([expect.stringContaining('without a proof')]);
  });
});

test('sealing keys may be added to a store whose proofs are those of the secret, while that is accepted', async () => {
  const dir = temporaryDirectory();
  const before = openIn(dir, createProofs(SECRET)).store;
  const lease = await before.acquire(newRunId(), OWNER);
  await before.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
  await before.finish(lease, COMPLETE);
  await before.close();
  const during = openIn(dir, createSeal([SEALING_KEY], true)).store;
  expect(await during.read(lease.run, OWNER, 0)).toMatchObject({ status: 'complete', seq: 1 });
  await during.close();
  const after = openIn(dir, createSeal([SEALING_KEY]));
  expect(await after.store.read(lease.run, OWNER, 0)).toBeNull();
  expect(after.errors).toEqual([expect.stringContaining('proven with a key that is not configured')]);
});
