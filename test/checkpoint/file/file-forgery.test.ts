import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { decodeFrame, encodeFrame, type FrameKind } from '../../../src/checkpoint/file/frame.ts';
import { encodeNoteFrame } from '../../../src/checkpoint/file/log-state.ts';
import { digestOfNote, encodeNote } from '../../../src/checkpoint/note-codec.ts';
import type { Seal } from '../../../src/checkpoint/seal.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { OWNER, STRANGER, temporaryDirectory } from '../fixtures.ts';
import {
  believed,
  FORGERIES,
  type Forger,
  makeScene,
  NOTE_FORGERIES,
  SEALS,
  type StoredEntry,
} from '../forgeries.ts';
import { linesOf, segmentIn } from './damaged-run.ts';

const KINDS = { opening: 'c', record: 'r', end: 'z' } as const;
const REPLICA = 'f'.repeat(32);

const FORGER: Forger = {
  opening: (_run, owner, epoch, base) => ({
    kind: 'opening',
    epoch,
    seq: base,
    body: `${owner} ${REPLICA} ${base} 1`,
  }),
  end: (epoch, end, seq) => ({ kind: 'end', epoch, seq, body: JSON.stringify({ ...end, seq }) }),
  owned: (entry, from, to) => ({ ...entry, body: entry.body.replace(from, to) }),
  based: (entry, base) => ({ ...entry, body: entry.body.replace(/ -?\d+ [01]/, ` ${base} 1`) }),
  renamed: (entry) => entry,
};

function entriesIn(segment: Buffer, run: RunId): readonly StoredEntry[] {
  return linesOf(segment, run).flatMap(({ kind, start, end }): StoredEntry[] => {
    const frame = decodeFrame(segment, start, end - 1);
    const entry = (Object.keys(KINDS) as StoredEntry['kind'][]).find((one) => KINDS[one] === kind);
    if (!frame || !entry) return [];
    const body = segment.toString('utf8', frame.body_start, frame.body_end);
    const seq = entry === 'record' ? Number(/\d+/.exec(body)?.[0]) : 0;
    return [{ kind: entry, epoch: frame.number, seq, body }];
  });
}

function openIn(dir: string, seal: Seal | undefined): FileStore {
  const options = { dir, ttl_ms: 3_600_000, lease_ms: 3000 } as const;
  const store = new FileStore({ ...options, seal, onError: () => {} });
  onTestFinished(() => store.close());
  return store;
}

describe.each(Object.entries(SEALS))(
  'in a directory, with %s, these forgeries are not believed:',
  (_, seal) => {
    test.each(Object.entries(FORGERIES))('%s', async (_name, forge) => {
      const dir = temporaryDirectory();
      const before = openIn(dir, seal);
      const scene = await makeScene(
        before,
        async (run) => entriesIn(readFileSync(segmentIn(dir)), run),
        FORGER,
      );
      await before.close();
      const segment = readFileSync(segmentIn(dir));
      const { run, entries } = forge(scene);
      const kept: Buffer[] = [];
      let at = 0;
      for (const { start, end } of linesOf(segment, run)) {
        kept.push(segment.subarray(at, start));
        at = end;
      }
      kept.push(segment.subarray(at));
      const lines = entries.map(({ kind, epoch, body }) =>
        encodeFrame(KINDS[kind] as FrameKind, run, epoch, body),
      );
      writeFileSync(segmentIn(dir), Buffer.concat([...kept, Buffer.from(`\n${lines.join('')}`)]));
      const store = openIn(dir, seal);
      expect(await believed(store, scene, { run, entries })).toBeUndefined();
    });

    test.each(Object.entries(NOTE_FORGERIES))('%s', async (_name, forge) => {
      const dir = temporaryDirectory();
      const note = { kind: 'thread', name: 'a thread' } as const;
      const before = openIn(dir, seal);
      await before.notes.put(OWNER, note, 'own', 60_000);
      expect(await before.notes.get(OWNER, note)).toBe('own');
      await before.close();
      const digest = digestOfNote(OWNER, note);
      const other = { ...note, name: 'another' };
      const text = forge({
        own: encodeNote(digest, 'own', seal),
        sibling: encodeNote(digestOfNote(OWNER, other), 'sibling', seal),
        foreign: encodeNote(digestOfNote(STRANGER, note), 'foreign', seal),
      });
      const at_ms = Date.now();
      const fields = {
        digest,
        text,
        expires_at_ms: at_ms + 60_000,
        mode: 'put',
        origin: 'x.1',
        at_ms,
      } as const;
      writeFileSync(segmentIn(dir), `\n${encodeNoteFrame(fields)}`, { flag: 'a' });
      const store = openIn(dir, seal);
      expect(await store.notes.get(OWNER, note)).toBeUndefined();
      expect(await store.notes.claim(OWNER, note, 'new', 1000)).toBe('new');
    });
  },
);
