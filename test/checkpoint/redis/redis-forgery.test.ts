import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { checkedLine } from '../../../src/checkpoint/checked-line.ts';
import { isPlainRecord } from '../../../src/checkpoint/record-codec.ts';
import { endId, openingId, parseId, recordId } from '../../../src/checkpoint/redis/log.ts';
import type { Seal } from '../../../src/checkpoint/seal.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { ObservedStore } from '../../redis/observed-store.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { OWNER, STRANGER } from '../fixtures.ts';
import {
  believed,
  FORGERIES,
  type Forger,
  makeScene,
  NOTE_FORGERIES,
  SEALS,
  type StoredEntry,
} from '../forgeries.ts';

vi.setConfig({ testTimeout: 60_000 });

const FORGER: Forger = {
  opening: (run, owner, epoch, base) => ({
    kind: 'opening',
    epoch,
    seq: base,
    body: JSON.stringify({ v: 1, run, owner, epoch, base, takeovers: [] }),
  }),
  end: (epoch, end, seq) => ({ kind: 'end', epoch, seq, body: JSON.stringify({ ...end, seq }) }),
  owned: (entry, from, to) => ({ ...entry, body: entry.body.replace(from, to) }),
  based: (entry, base) => ({ ...entry, body: entry.body.replace(/"base":-?\d+/, `"base":${base}`) }),
  renamed: (entry, from, to) => ({ ...entry, body: entry.body.replace(from, to) }),
};

function idOf({ kind, epoch, seq }: StoredEntry): string {
  if (kind === 'opening') return openingId(epoch);
  return kind === 'end' ? endId(epoch) : recordId(epoch, seq);
}

const isPlain = (line: string): boolean => isPlainRecord(Buffer.from(line));

const lineOf = ({ body }: StoredEntry): string => (isPlain(body) ? body : checkedLine(body));

const binary = await redisBinary();

if ('missing' in binary) test('forgeries in Redis', needs(binary), () => {});
else
  describe.each(Object.entries(SEALS))(
    'in Redis, with %s, these forgeries are not believed:',
    describeForgeries(binary.path),
  );

function describeForgeries(path: string) {
  return (_: string, seal: Seal | undefined): void => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await RedisServer.start({ binary: path });
    });
    afterAll(() => server.stop());

    const keyOf = (run: RunId) => `holdfast:{${run}}:log`;

    async function entriesOf(run: RunId): Promise<readonly StoredEntry[]> {
      const entries = await server.admin.xrange(keyOf(run), '-', '+');
      return entries.map(([id, [, line = '']]) => ({
        ...parseId(id),
        body: isPlain(line) ? line : line.trimEnd().slice(9),
      }));
    }

    async function replace(run: RunId, entries: readonly StoredEntry[]): Promise<void> {
      const pipeline = server.admin.pipeline().del(keyOf(run));
      for (const entry of entries) pipeline.xadd(keyOf(run), idOf(entry), 'l', lineOf(entry), 't', 'x.1');
      for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
    }

    test.each(Object.entries(FORGERIES))('%s', async (_name, forge) => {
      const first = await ObservedStore.open(server.url, { seal });
      const scene = await makeScene(first.store, entriesOf, FORGER);
      await first.store.close();
      const forgery = forge(scene);
      await replace(forgery.run, forgery.entries);
      // A new replica, which has not read a sound version yet.
      const { store } = await ObservedStore.open(server.url, { seal });
      expect(await believed(store, scene, forgery)).toBeUndefined();
    });

    test.each(Object.entries(NOTE_FORGERIES))('%s', async (_name, forge) => {
      const { store, damages } = await ObservedStore.open(server.url, { seal });
      await server.admin.flushdb();
      const stored: string[] = [];
      const keys = [
        ['own', OWNER, 'a thread'],
        ['sibling', OWNER, 'another'],
        ['foreign', STRANGER, 'a thread'],
      ] as const;
      let key = '';
      for (const [value, owner, name] of keys) {
        const before = await server.admin.keys('holdfast:note:*');
        await store.notes.put(owner, { kind: 'thread', name }, value, 60_000);
        const [added = ''] = (await server.admin.keys('holdfast:note:*')).filter(
          (one) => !before.includes(one),
        );
        stored.push((await server.admin.get(added)) ?? '');
        key ||= added;
      }
      const [own = '', sibling = '', foreign = ''] = stored;
      const note = { kind: 'thread', name: 'a thread' } as const;
      expect(await store.notes.get(OWNER, note)).toBe('own');
      await server.admin.set(key, forge({ own, sibling, foreign }));
      expect(await store.notes.get(OWNER, note)).toBeUndefined();
      expect(damages).toHaveLength(1);
      expect(await store.notes.claim(OWNER, note, 'new', 1000)).toBe('new');
    });
  };
}
