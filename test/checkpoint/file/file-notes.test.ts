import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FileDirectory } from '../../../src/checkpoint/file/file-directory.ts';
import { FileNotes } from '../../../src/checkpoint/file/file-notes.ts';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import type { FileSystem } from '../../../src/checkpoint/file/file-system.ts';
import { UnreadableNoteError } from '../../../src/checkpoint/notes.ts';
import { OWNER, temporaryDirectory } from '../fixtures.ts';
import { InterruptedFileSystem } from './interrupted-file-system.ts';

const DIGEST = 'd'.repeat(64);
const inAnHour = () => Date.now() + 3_600_000;
const anHourAgo = () => Date.now() - 3_600_000;
let replicas = 0;

function notesIn(dir: string, fs: FileSystem = node_fs): FileNotes {
  const notes = new FileNotes({ directory: new FileDirectory(dir, fs), replica: String(++replicas) });
  onTestFinished(() => notes.close());
  return notes;
}

/** Does something to a note while another process does something else, at every moment in turn. */
function interrupt(
  prepare: (notes: FileNotes, dir: string) => void,
  work: (notes: FileNotes) => unknown,
  other: (notes: FileNotes) => unknown,
  check: (result: unknown, otherResult: unknown, notes: FileNotes, dir: string) => void,
): void {
  for (let at_call = 1; ; at_call++) {
    const dir = temporaryDirectory();
    prepare(notesIn(dir), dir);
    let otherResult: unknown;
    const interruption = new InterruptedFileSystem(at_call, () => {
      otherResult = other(notesIn(dir));
    });
    const notes = notesIn(dir, interruption.fs);
    interruption.armed = true;
    const result = work(notes);
    interruption.armed = false;
    if (!interruption.interrupted) {
      expect(at_call).toBeGreaterThan(2);
      return;
    }
    check(result, otherResult, notesIn(dir), dir);
    expect(node_fs.readdirSync(dir).filter((name) => name !== DIGEST)).toEqual([]);
  }
}

describe('at every moment', () => {
  test.each<[string, (notes: FileNotes, dir: string) => void, string?]>([
    ['is new', () => {}],
    ['was there before', (notes) => notes.put(DIGEST, 'old', anHourAgo())],
    ['cannot be read', (notes) => notes.put(DIGEST, 'unreadable', inAnHour()), 'unreadable'],
    ['is damaged', (_, dir) => node_fs.writeFileSync(join(dir, DIGEST), 'no note'), ''],
  ])('two processes that claim a note that %s keep the same', (_, prepare, in_place_of) => {
    interrupt(
      prepare,
      (notes) => notes.claim(DIGEST, 'one', inAnHour(), in_place_of),
      (notes) => notes.claim(DIGEST, 'two', inAnHour(), in_place_of),
      (one, two, notes) => {
        expect(one).toBe(two);
        expect(notes.get(DIGEST)).toBe(one);
      },
    );
  });

  test('one of two processes that take a note has it', () => {
    interrupt(
      (notes) => notes.put(DIGEST, 'told once', inAnHour()),
      (notes) => notes.take(DIGEST),
      (notes) => notes.take(DIGEST),
      (one, two, notes) => {
        expect([one, two].filter((text) => text !== undefined)).toEqual(['told once']);
        expect(notes.get(DIGEST)).toBeUndefined();
      },
    );
  });

  test('a note that is put while an expired one is claimed is not lost', () => {
    interrupt(
      (notes) => notes.put(DIGEST, 'old', anHourAgo()),
      (notes) => notes.claim(DIGEST, 'claimed', inAnHour()),
      (notes) => notes.put(DIGEST, 'put', inAnHour()),
      (claimed, _, notes) => {
        expect(['claimed', 'put']).toContain(claimed);
        expect(notes.get(DIGEST)).toBe('put');
      },
    );
  });

  test('a note that is claimed while an expired one is swept is not lost', () => {
    interrupt(
      (notes, dir) => {
        notes.put(DIGEST, 'old', anHourAgo());
        node_fs.utimesSync(join(dir, DIGEST), 1, 1);
      },
      (notes) => notes.sweep(),
      (notes) => notes.claim(DIGEST, 'claimed', inAnHour()),
      (_, claimed, notes) => {
        expect(claimed).toBe('claimed');
        expect(notes.get(DIGEST)).toBe('claimed');
      },
    );
  });
});

test('a sweep removes what is over, is damaged, or was left behind, once it has not been touched for a minute', () => {
  const dir = temporaryDirectory();
  const notes = notesIn(dir);
  const names = ['a', 'b', 'c', 'd'].map((digit) => digit.repeat(64)) as [string, string, string, string];
  const [expired, kept, damaged, fresh] = names;
  notes.put(expired, 'x', anHourAgo());
  notes.put(kept, 'x', inAnHour());
  node_fs.writeFileSync(join(dir, damaged), 'no note');
  node_fs.writeFileSync(join(dir, `${kept}.9.tmp`), '');
  const long_ago_s = Date.now() / 1000 - 61;
  for (const name of node_fs.readdirSync(dir)) node_fs.utimesSync(join(dir, name), long_ago_s, long_ago_s);
  notes.put(fresh, 'x', anHourAgo());
  notes.sweep();
  expect(node_fs.readdirSync(dir).sort()).toEqual([kept, fresh]);
});

test('a damaged note counts as none, is reported once, and makes way for a new one', async () => {
  const dir = temporaryDirectory();
  const errors: Error[] = [];
  const settings = { fsync: 'never', ttl_ms: 3_600_000, lease_ms: 3000 } as const;
  const store = new FileStore({ dir, ...settings, onError: (error) => errors.push(error) });
  onTestFinished(() => store.close());
  const { notes } = store;
  const key = { kind: 'thread', name: 'x' } as const;
  await notes.put(OWNER, key, 'old', 60_000);
  const [digest = ''] = node_fs.readdirSync(join(dir, 'notes'));
  node_fs.truncateSync(join(dir, 'notes', digest), 0);
  for (let time = 0; time < 3; time++) expect(await notes.get(OWNER, key)).toBeUndefined();
  expect(await notes.claim(OWNER, key, 'new', 60_000)).toBe('new');
  expect(await notes.claim(OWNER, key, 'newer', 60_000)).toBe('new');
  expect(errors).toEqual([expect.any(UnreadableNoteError)]);
});

test('notes are private', () => {
  const dir = temporaryDirectory();
  notesIn(dir).put(DIGEST, 'x', inAnHour());
  expect(node_fs.statSync(join(dir, DIGEST)).mode & 0o777).toBe(0o600);
});
