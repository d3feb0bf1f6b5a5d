import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { segmentName } from '../../../src/checkpoint/file/names.ts';
import { UnreadableNoteError } from '../../../src/checkpoint/notes.ts';
import { OWNER, temporaryDirectory } from '../fixtures.ts';
import { Peer } from './file-peer.ts';
import { InterruptedFileSystem } from './interrupted-file-system.ts';

const digest = 'd'.repeat(64);
const SMALL = { segment_bytes: 100_000 } as const;
const inAnHour = () => Date.now() + 3_600_000;
const anHourAgo = () => Date.now() - 3_600_000;
const put = (peer: Peer, text: string, expires_at_ms: number) =>
  peer.call('put_note', { digest, text, expires_at_ms });
const claim = (peer: Peer, text: string, in_place_of?: string) =>
  peer.call('claim_note', { digest, text, expires_at_ms: inAnHour(), in_place_of });
const extend = (peer: Peer, expires_at_ms: number) => peer.call('extend_note', { digest, expires_at_ms });
const get = (peer: Peer) => peer.call('get_note', { digest });
const take = (peer: Peer) => peer.call('take_note', { digest });

/** Runs one process's work on a note, interrupted by another process at each possible moment in turn. */
function interrupt(
  prepare: (peer: Peer) => void,
  work: (peer: Peer) => unknown,
  other: (peer: Peer) => unknown,
  check: (result: unknown, otherResult: unknown, peer: Peer) => void,
): void {
  for (let at_call = 1; ; at_call++) {
    const dir = temporaryDirectory();
    prepare(new Peer(dir, undefined, SMALL));
    let otherResult: unknown;
    const interruption = new InterruptedFileSystem(at_call, () => {
      otherResult = other(new Peer(dir, undefined, SMALL));
    });
    const peer = new Peer(dir, undefined, { ...SMALL, fs: interruption.fs });
    interruption.armed = true;
    const result = work(peer);
    interruption.armed = false;
    if (!interruption.interrupted) {
      expect(at_call).toBeGreaterThan(2);
      return;
    }
    for (const each of [peer, new Peer(dir, undefined, SMALL)]) check(result, otherResult, each);
  }
}

describe('at every moment', () => {
  test.each<[string, (peer: Peer) => void, string?]>([
    ['is new', () => {}],
    ['was there before', (peer) => void put(peer, 'old', anHourAgo())],
    ['cannot be read', (peer) => void put(peer, 'unreadable', inAnHour()), 'unreadable'],
  ])('two processes that claim a note that %s keep the same', (_, prepare, in_place_of) => {
    interrupt(
      prepare,
      (peer) => claim(peer, 'one', in_place_of),
      (peer) => claim(peer, 'two', in_place_of),
      (one, two, peer) => {
        expect(one).toBe(two);
        expect(get(peer)).toBe(one);
      },
    );
  });

  test('one of two processes that take a note has it', () => {
    interrupt(
      (peer) => put(peer, 'told once', inAnHour()),
      take,
      take,
      (one, two, peer) => {
        expect([one, two].filter((text) => text !== undefined)).toEqual(['told once']);
        expect(get(peer)).toBeUndefined();
      },
    );
  });

  test('a note that is put while an expired one is claimed is not lost', () => {
    interrupt(
      (peer) => put(peer, 'old', anHourAgo()),
      (peer) => claim(peer, 'claimed'),
      (peer) => put(peer, 'put', inAnHour()),
      (claimed, _, peer) => {
        expect(['claimed', 'put']).toContain(claimed);
        expect(['claimed', 'put']).toContain(get(peer));
        if (claimed === 'put') expect(get(peer)).toBe('put');
      },
    );
  });

  test('a note that is extended while another process puts, takes or copies it is what that has made of it', () => {
    for (const [other, left] of [
      [(peer: Peer) => put(peer, 'new', inAnHour()), 'new'],
      [take, undefined],
      [(peer: Peer) => peer.directory.keep(), 'old'],
    ] as const) {
      interrupt(
        (peer) => {
          put(peer, 'old', inAnHour());
          fill(peer);
        },
        (peer) => extend(peer, inAnHour() + 60_000) || extend(peer, inAnHour() + 60_000),
        other,
        (isExtended, __, peer) => {
          expect(isExtended).toBe(true);
          expect(get(peer)).toBe(left);
        },
      );
    }
  });

  test('a note that is claimed or taken while it is copied is what it was made', () => {
    for (const [other, left] of [
      [(peer: Peer) => put(peer, 'new', inAnHour()), 'new'],
      [take, undefined],
    ] as const) {
      interrupt(
        (peer) => {
          put(peer, 'old', inAnHour());
          fill(peer);
        },
        (peer) => peer.directory.keep(),
        other,
        (_, __, peer) => expect(get(peer)).toBe(left),
      );
    }
  });
});

test('a process reads claims of notes whose segment another one has removed meanwhile', () => {
  const dir = temporaryDirectory();
  const peer = new Peer(dir, undefined, SMALL);
  put(peer, 'unreadable', inAnHour());
  const away = new Peer(dir, undefined, SMALL);
  fill(peer);
  expect(claim(peer, 'new', 'unreadable')).toBe('new');
  peer.directory.keep();
  expect(node_fs.existsSync(join(dir, segmentName(1)))).toBe(false);
  expect(get(away)).toBe('new');
});

test('a note is read while another process copies it and removes its segment, at every moment', () => {
  for (const [work, result, left] of [
    [get, 'old', 'old'],
    [take, 'old', undefined],
    [(peer: Peer) => claim(peer, 'new', 'old'), 'new', 'new'],
    [(peer: Peer) => claim(peer, 'new'), 'old', 'old'],
  ] as const) {
    interrupt(
      (peer) => {
        put(peer, 'old', inAnHour());
        fill(peer);
      },
      work,
      (peer) => peer.directory.keep(),
      (answer, _, peer) => {
        // If the copy overtakes a claim, the caller tries it again.
        expect(answer === result || (result === 'new' && answer === 'old')).toBe(true);
        expect(get(peer)).toBe(answer === result ? left : 'old');
      },
    );
  }
});

/** Writes expired notes until a new segment begins. */
function fill(peer: Peer): void {
  const text = 'x'.repeat(16_000);
  while (peer.directory.log.segment === 1)
    peer.call('put_note', { digest: 'e'.repeat(64), text, expires_at_ms: anHourAgo() });
}

test('a damaged note counts as none, is reported once, and makes way for a new one', async () => {
  const dir = temporaryDirectory();
  const errors: Error[] = [];
  const settings = { ttl_ms: 3_600_000, lease_ms: 3000 } as const;
  const store = new FileStore({ dir, ...settings, onError: (error) => errors.push(error) });
  onTestFinished(() => store.close());
  const { notes } = store;
  const key = { kind: 'thread', name: 'x' } as const;
  await notes.put(OWNER, key, 'old', 60_000);
  const path = join(dir, segmentName(1));
  node_fs.writeFileSync(path, node_fs.readFileSync(path, 'utf8').replace('old', 'odd'));
  for (let time = 0; time < 3; time++) expect(await notes.get(OWNER, key)).toBeUndefined();
  expect(await notes.claim(OWNER, key, 'new', 60_000)).toBe('new');
  expect(await notes.claim(OWNER, key, 'newer', 60_000)).toBe('new');
  expect(errors).toEqual([expect.any(UnreadableNoteError)]);
});
