import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { JournalRecord } from '../../../src/checkpoint/journal.ts';
import { encodeRecord } from '../../../src/checkpoint/record-codec.ts';
import type { RunId, StoredRun } from '../../../src/checkpoint/store.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { ObservedStore } from '../../redis/observed-store.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { COMPLETE, HEADER_RECORD, newRunId, OWNER, SMALL_RUN, STRANGER, textRecord } from '../fixtures.ts';

vi.setConfig({ testTimeout: 60_000 });

/** The id of an entry, and its alternating field names and values. */
type Entry = readonly [id: string, fields: readonly Buffer[]];

const LINE = 1;

const binary = await redisBinary();

if ('missing' in binary) test('a damaged log in Redis', needs(binary), () => {});
else describe('a damaged log in Redis', () => describeDamage(binary.path));

function describeDamage(path: string): void {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start({ binary: path });
  });
  afterAll(() => server.stop());

  const keyOf = (run: RunId) => `holdfast:{${run}}:log`;

  /** Stores the records of SMALL_RUN under two leases, and the end. */
  async function storedLog(observed: ObservedStore) {
    const { store } = observed;
    const run = newRunId();
    const first = await store.acquire(run, OWNER);
    await store.append(first, SMALL_RUN.slice(0, 3));
    const second = await store.acquire(run, OWNER, 1);
    await store.append(second, SMALL_RUN.slice(3));
    await store.finish(second, COMPLETE);
    const entries = (await server.admin.xrangeBuffer(keyOf(run), '-', '+')).map(
      ([id, fields]): Entry => [id.toString(), fields],
    );
    expect(entries.map(([id]) => id)).toEqual([
      '1-0',
      '1-1',
      '1-4',
      '1-6',
      '2-0',
      '2-8',
      `2-${2n ** 64n - 1n}`,
    ]);
    return { run, entries };
  }

  async function replace(run: RunId, entries: readonly Entry[]): Promise<void> {
    const pipeline = server.admin.pipeline().del(keyOf(run));
    for (const [id, fields] of entries) pipeline.xadd(keyOf(run), id, ...fields);
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
  }

  /** After any damage, a read returns only what was said, and nothing truncated passes for complete. */
  async function expectSoundPrefix(observed: ObservedStore, run: RunId): Promise<StoredRun | null> {
    const { store, damages } = observed;
    const told = damages.length;
    expect(await store.read(run, STRANGER, 0)).toBeNull();
    const stored = await store.read(run, OWNER, 0);
    if (!stored) return stored;
    expect(stored.records).toEqual(SMALL_RUN.slice(0, stored.records.length));
    expect(stored.seq).toBe(Math.max(stored.records.at(-1)?.seq ?? 0, 0));
    if (stored.status === 'complete') expect(stored.records).toEqual(SMALL_RUN);
    if (!stored.damage) expect(damages).toHaveLength(told);
    else {
      const place = `is damaged in record ${stored.damage.record} (`;
      expect(damages.map(({ message }) => message)).toContainEqual(expect.stringContaining(place));
    }
    for (const from of [1, 3, 4, 6, 7]) {
      const tail = await store.read(run, OWNER, from);
      expect(tail?.records).toEqual(
        SMALL_RUN.slice(0, stored.records.length).filter(({ seq }) => seq > from),
      );
    }
    return stored;
  }

  test('gives the sound part, whichever byte was flipped, and says what is wrong', async () => {
    const observed = await ObservedStore.open(server.url);
    const { run, entries } = await storedLog(observed);
    for (const [position, [id, fields]] of entries.entries()) {
      const line = fields[LINE] as Buffer;
      // The newline at the end of a line carries no meaning.
      for (let offset = 0; offset < line.length - 1; offset++) {
        const damaged = Buffer.from(line);
        damaged[offset] = (damaged[offset] as number) ^ (1 << (offset % 8));
        const entry: Entry = [id, fields.with(LINE, damaged)];
        await replace(run, entries.with(position, entry));
        const stored = await expectSoundPrefix(observed, run);
        expect(stored?.status).not.toBe('complete');
        expect(stored).toHaveProperty('damage');
      }
    }
  });

  test('gives the sound part, whichever entry is missing', async () => {
    const observed = await ObservedStore.open(server.url);
    const { run, entries } = await storedLog(observed);
    for (const position of entries.keys()) {
      await replace(run, entries.toSpliced(position, 1));
      const stored = await expectSoundPrefix(observed, run);
      // Without its second opening, the run still has all its records; without its end, it still has them but isn't
      // finished.
      const isWhole = stored?.records.length === SMALL_RUN.length;
      expect([position, isWhole]).toEqual([position, position === 4 || position === 6 || position === 0]);
    }
  });

  test('gives the sound part, wherever it was cut off', async () => {
    const observed = await ObservedStore.open(server.url);
    const { run, entries } = await storedLog(observed);
    for (let length = 1; length < entries.length; length++) {
      await replace(run, entries.slice(0, length));
      expect(await expectSoundPrefix(observed, run)).toMatchObject({ status: 'running' });
    }
  });

  test('gives the sound part when two entries have changed places', async () => {
    const observed = await ObservedStore.open(server.url);
    const { run, entries } = await storedLog(observed);
    for (const [i, [id, fields]] of entries.entries()) {
      for (const [j, [other_id, other]] of entries.entries()) {
        if (i >= j) continue;
        await replace(run, entries.with(i, [id, other]).with(j, [other_id, fields]));
        const stored = await expectSoundPrefix(observed, run);
        expect(stored?.status).not.toBe('complete');
      }
    }
  });

  test('gives nothing of another run', async () => {
    const observed = await ObservedStore.open(server.url);
    const { run } = await storedLog(observed);
    const { entries } = await storedLog(observed);
    await replace(run, entries);
    expect(await observed.store.read(run, OWNER, 0)).toBeNull();
  });

  /** A running log with one damaged entry. */
  async function damagedLog(observed: ObservedStore, position: number) {
    const { run, entries } = await storedLog(observed);
    const damage = async (at: number) => {
      const running = entries.slice(0, -1);
      const [id, fields] = running[at] as Entry;
      const line = Buffer.from(fields[LINE] as Buffer);
      line[20] = (line[20] as number) ^ 1;
      await replace(run, running.with(at, [id, fields.with(LINE, line)]));
    };
    await damage(position);
    return { run, damage };
  }

  test('is reported once, however often it is read, and again when more is found to be wrong', async () => {
    const observed = await ObservedStore.open(server.url);
    const { store, damages } = observed;
    const { run, damage } = await damagedLog(observed, 3);
    for (let reading = 0; reading < 5; reading++) {
      for (const from of [0, 3, 7]) expect(await store.read(run, OWNER, from)).toMatchObject({ seq: 3 });
    }
    expect(damages.map(({ message }) => message)).toEqual([expect.stringMatching(/events 4 to 5/)]);
    await damage(2);
    for (let reading = 0; reading < 5; reading++)
      expect(await store.read(run, OWNER, 7)).toMatchObject({ seq: 0 });
    expect(damages).toHaveLength(2);
    // The holder of the run continues, unaware of the damage.
    for (let seq = 8; seq < 13; seq++) {
      await server.admin.xadd(keyOf(run), `2-${seq + 1}`, 'l', encodeRecord(textRecord(seq - 1, 'x')));
      expect((await store.read(run, OWNER, 7))?.damage?.reason).toContain(`discarded: events 4 to ${seq}`);
    }
    expect(damages).toHaveLength(2);
    // Another replica has not reported the damage yet.
    const other = await ObservedStore.open(server.url);
    for (let reading = 0; reading < 5; reading++) await other.store.read(run, OWNER, 0);
    expect(other.damages).toHaveLength(1);
  });

  test('is reported by the replica that takes it over without having read it', async () => {
    const observed = await ObservedStore.open(server.url);
    const { run } = await damagedLog(observed, 3);
    await observed.store.acquire(run, OWNER, 2);
    expect(observed.damages.map(({ message }) => message)).toEqual([
      expect.stringMatching(/it continues after event 3/),
    ]);
  });

  test('is continued after its sound part, and sound from then on', async () => {
    const observed = await ObservedStore.open(server.url);
    const { store, damages } = observed;
    const { run } = await damagedLog(observed, 2);
    const damaged = await store.read(run, OWNER, 0);
    expect(damaged).toMatchObject({ status: 'running', seq: 0, records: [HEADER_RECORD], epoch: 2 });
    expect(damages.at(-1)?.message).toMatch(/events 1 to 3/);
    const lease = await store.acquire(run, OWNER, 2);
    const again: JournalRecord = textRecord(0, 'x', 'y');
    expect(await store.append(lease, [again])).toBe(2);
    await store.finish(lease, COMPLETE);
    damages.length = 0;
    expect(await store.read(run, OWNER, 0)).toMatchObject({
      status: 'complete',
      seq: 2,
      takeovers: [{ seq: 5 }, { seq: 0 }],
      records: [HEADER_RECORD, again],
    });
    expect(damages).toEqual([]);
  });
}
