import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { decodeEntry, encodeEntry, indexedRuns, threadTags } from '../../src/checkpoint/run-index.ts';
import { createSeal } from '../../src/checkpoint/seal.ts';
import type { RunId } from '../../src/checkpoint/store.ts';
import { newRunId, OWNER, SEALING_KEY, STRANGER } from './fixtures.ts';

const OTHER_KEY = 'o'.repeat(32);
const RUN = newRunId();
const seal = createSeal([SEALING_KEY]);

test('an entry says when its run began, which it is, and which tag it has', () => {
  const [tag] = threadTags(OWNER, 'a thread', undefined);
  for (const own of [undefined, tag]) {
    const entry = encodeEntry(RUN, 1_700_000_000_123.9, own);
    expect(decodeEntry(entry)).toEqual({
      run: RUN,
      created_at_ms: 1_700_000_000_123,
      entry,
      ...(own !== undefined && { tag: own }),
    });
  }
});

test('what is damaged, or no entry at all, is left out', () => {
  const [newest, oldest] = [encodeEntry(RUN, 2), encodeEntry(newRunId(), 1)];
  const bad = ['', 'x', '.', `${newest}.`, `${newest}.short`, `-1.${RUN}`, `1e3.${RUN}`, '1.run_short', RUN];
  const listed = indexedRuns([oldest, ...bad, newest, `${newest}/../x`], OWNER, undefined, undefined);
  expect(listed.map(({ entry }) => entry)).toEqual([newest, oldest]);
});

test('runs that began at the same time have one order, however they are stored', () => {
  const runs = ['a', 'b', 'c', 'd'].map((letter): RunId => `run_${letter.repeat(22)}`);
  const entries = runs.map((run) => encodeEntry(run, 7));
  const order = (some: readonly string[]) =>
    indexedRuns(some, OWNER, undefined, undefined).map(({ run }) => run);
  expect(order(entries)).toEqual(runs.toReversed());
  expect(order(entries.toReversed())).toEqual(runs.toReversed());
});

test('tags are those of one thread of one owner', () => {
  const all = [
    ...threadTags(OWNER, 'a', undefined),
    ...threadTags(OWNER, 'b', undefined),
    ...threadTags(STRANGER, 'a', undefined),
  ];
  expect(new Set(all).size).toBe(3);
  for (const tag of all) expect(tag).toMatch(/^[\w-]{16}$/);
});

test('what a sealed store holds of a thread cannot be made from its name without the key', () => {
  const [tag] = threadTags(OWNER, 'a', seal);
  const guesses = ['a', JSON.stringify([OWNER, 'thread', 'a'])].map((guess) =>
    createHash('sha256').update(guess).digest().subarray(0, 12).toString('base64url'),
  );
  expect([...guesses, ...threadTags(OWNER, 'a', undefined)]).not.toContain(tag);
  expect(threadTags(OWNER, 'a', createSeal([OTHER_KEY]))[0]).not.toBe(tag);
  expect(threadTags(OWNER, 'a', createSeal([SEALING_KEY]))[0]).toBe(tag);
});

test('runs from before a key was added, and from before there was any, are found', () => {
  const rotated = createSeal([OTHER_KEY, SEALING_KEY]);
  const entries = [undefined, seal, rotated].map((old, at_ms) =>
    encodeEntry(newRunId(), at_ms, threadTags(OWNER, 'a', old)[0]),
  );
  expect(indexedRuns(entries, OWNER, 'a', rotated).map(({ entry }) => entry)).toEqual(entries.toReversed());
  expect(indexedRuns(entries, OWNER, 'b', rotated)).toEqual([]);
});
