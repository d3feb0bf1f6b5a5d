import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newMark } from '../../../src/checkpoint/epoch.ts';
import { REPLICAS_KEYS } from '../../../src/checkpoint/redis/keys.ts';
import type { RedisStore } from '../../../src/checkpoint/redis/store.ts';
import { createSeal } from '../../../src/checkpoint/seal.ts';
import { JournalGapError, type Lease, type RunId, StaleLeaseError } from '../../../src/checkpoint/store.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { ObservedStore } from '../../redis/observed-store.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import {
  COMPLETE,
  HEADER_RECORD,
  newRunId,
  OWNER,
  SEALING_KEY,
  SMALL_RUN,
  STRANGER,
  storeRun,
  textOf,
  textRecord,
} from '../fixtures.ts';

vi.setConfig({ testTimeout: 60_000 });

const END = '18446744073709551615';
const FAILED = { status: 'failed', at_ms: 0 } as const;
const RACES = 1000;
const RACES_AT_ONCE = 50;

const binary = await redisBinary();

if ('missing' in binary) test('the Redis store', needs(binary), () => {});
else describe('the Redis store', () => describeStore(binary.path));

function describeStore(path: string): void {
  let server: RedisServer;
  let databases = 0;
  beforeAll(async () => {
    server = await RedisServer.start({ binary: path });
  });
  afterAll(() => server.stop());

  /** Opens stores on a database of their own, and points `server.admin` at it. */
  async function openAll(count: number, settings: Parameters<typeof ObservedStore.open>[1] = {}) {
    const database = databases++;
    await server.admin.select(database);
    const url = `${server.url}/${database}`;
    return Promise.all(Array.from({ length: count }, () => ObservedStore.open(url, settings)));
  }

  const open = async (settings = {}) => (await openAll(1, settings))[0] as ObservedStore;
  const openPair = async () => (await openAll(2)) as [ObservedStore, ObservedStore];

  const logOf = (run: RunId): string => `holdfast:{${run}}:log`;
  const idsOf = async (run: RunId): Promise<string[]> =>
    (await server.admin.xrange(logOf(run), '-', '+')).map(([id]) => id);

  async function begin(store: RedisStore): Promise<Lease> {
    const lease = await store.acquire(newRunId(), OWNER);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'a', 'b')]);
    return lease;
  }

  test('keeps a run as one stream, in which every epoch has an opening and the run an end', async () => {
    const [{ store }, other] = await openPair();
    const lease = await begin(store);
    const next = await other.store.acquire(lease.run, OWNER, 1);
    await other.store.append(next, [textRecord(2, 'c', 'd')]);
    await other.store.release(next);
    const last = await store.acquire(lease.run, OWNER, 3);
    await store.finish(last, COMPLETE);
    expect(await idsOf(lease.run)).toEqual(['1-0', '1-1', '1-3', '2-0', '2-5', '3-0', '4-0', `4-${END}`]);
    expect(await server.admin.keys('*{run_*')).toEqual([logOf(lease.run)]);
  });

  test('reads all notes of one turn with one command, and a hundred at most', async () => {
    const { store } = await open();
    const read = (count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, i) => store.notes.get(OWNER, { kind: 'step', name: `${i}` })),
      );
    for (const [count, commands] of [
      [1, 1],
      [2, 1],
      [100, 1],
      [101, 2],
    ] as const) {
      const before = await server.calls('mget');
      await read(count);
      expect((await server.calls('mget')) - before).toBe(commands);
    }
  });

  test('rejects all reads of a turn if Redis does not answer', async () => {
    const { store } = await open({ command_ms: 500 });
    const reads = (kind: 'step' | 'task') => store.notes.get(OWNER, { kind, name: 'a' });
    server.pause();
    try {
      const outcomes = await Promise.allSettled([reads('step'), reads('task')]);
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    } finally {
      server.resume();
    }
  });

  describe('leaves it to Redis to refuse', () => {
    const SMALLER = /ID specified in XADD is equal or smaller/;

    test('a writer in an older epoch', async () => {
      const { store } = await open();
      const { run } = await begin(store);
      await store.acquire(run, OWNER, 1);
      for (const id of ['1-4', '1-999999', `1-${END}`, '2-0'])
        await expect(server.admin.xadd(logOf(run), id, 'l', 'x')).rejects.toThrow(SMALLER);
    });

    test('a writer after the end', async () => {
      const { store } = await open();
      const lease = await begin(store);
      await store.finish(lease, COMPLETE);
      for (const id of ['1-4', '1-999999', `1-${END}`])
        await expect(server.admin.xadd(logOf(lease.run), id, 'l', 'x')).rejects.toThrow(SMALLER);
    });
  });

  test('gives an orphan to exactly one of two replicas that race for it, and mixes nothing', async () => {
    const [first, second] = await openPair();
    const dead = await ObservedStore.open(`${server.url}/${databases - 1}`);
    const runs: RunId[] = [];
    for (let i = 0; i < RACES; i++) runs.push((await begin(dead.store)).run);
    await dead.store.close();

    const attempts: [RedisStore, string][] = [
      [first.store, 'x'],
      [second.store, 'y'],
    ];
    const race = async (run: RunId): Promise<string> => {
      const wins = await Promise.all(
        attempts.map(async ([store, letter]) => {
          try {
            const lease = await store.acquire(run, OWNER, 1);
            await store.append(lease, [textRecord(2, letter, letter)]);
            await store.append(lease, [textRecord(4, letter)]);
            return letter;
          } catch (error) {
            expect(error).toMatchObject({ name: 'AcquireRefusedError', reason: 'taken' });
            return '';
          }
        }),
      );
      const winners = wins.join('');
      expect(winners).toMatch(/^[xy]$/);
      expect(await first.text({ run } as Lease)).toBe(`ab${winners.repeat(3)}`);
      expect(await idsOf(run)).toEqual(['1-0', '1-1', '1-3', '2-0', '2-5', '2-6']);
      return winners;
    };
    const winners: string[] = [];
    for (let i = 0; i < RACES; i += RACES_AT_ONCE) {
      // Redis usually serves the first request first, so alternate the order.
      attempts.reverse();
      winners.push(...(await Promise.all(runs.slice(i, i + RACES_AT_ONCE).map(race))));
    }
    expect(winners).toHaveLength(RACES);
    expect(new Set(winners)).toEqual(new Set(['x', 'y']));
  });

  test('takes a run from a holder that keeps appending', async () => {
    const [{ store: holder }, { store }] = await openPair();
    const lease = await begin(holder);
    let seq = 2;
    const appending = (async () => {
      for (;;) {
        await holder.append(lease, [textRecord(seq++, 'c')]);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    // Handle the rejection from the start: the append may fail before the answer to the takeover arrives.
    const refused = expect(appending).rejects.toBeInstanceOf(StaleLeaseError);
    const next = await store.acquire(lease.run, OWNER, 1);
    await refused;
    const stored = await store.read(lease.run, OWNER, 0);
    const at = stored?.seq ?? 0;
    expect(stored).toMatchObject({ epoch: 2, takeovers: [{ seq: at }] });
    expect(await store.append(next, [textRecord(at, 'd')])).toBe(at + 1);
    expect(textOf((await store.read(lease.run, OWNER, 0))?.records ?? [])).toBe(`ab${'c'.repeat(at - 2)}d`);
  });

  test('fences a replica whose takeover Redis has lost: the holder before it may append again', async () => {
    const [first, second] = await openPair();
    const before = await begin(first.store);
    const after = await second.store.acquire(before.run, OWNER, 1);
    await second.store.append(after, [textRecord(2, 'x')]);
    // As after a restart, or a failover to a Redis that lagged behind.
    await server.admin.xdel(logOf(before.run), '2-0', '2-4');
    await server.admin.call('XSETID', logOf(before.run), '1-3');

    expect(await first.store.append(before, [textRecord(2, 'c')])).toBe(3);
    await expect(second.store.append(after, [textRecord(3, 'y')])).rejects.toBeInstanceOf(StaleLeaseError);
    await expect(second.store.finish(after, COMPLETE)).rejects.toBeInstanceOf(StaleLeaseError);
    expect(await first.text(before)).toBe('abc');
  });

  test('tells two leases of the same epoch apart, when Redis has forgotten the first', async () => {
    const [first, second] = await openPair();
    const { run } = await begin(first.store);
    const forgotten = await first.store.acquire(run, OWNER, 1);
    const [before] = (await first.store.read(run, OWNER, 0))?.takeovers ?? [];
    await server.admin.xdel(logOf(run), '2-0');
    await server.admin.call('XSETID', logOf(run), '1-3');
    await expect(first.store.append(forgotten, [textRecord(2, 'x')])).rejects.toBeInstanceOf(StaleLeaseError);
    const lease = await second.store.acquire(run, OWNER, 1);
    expect(lease.epoch).toBe(2);
    const [after] = (await second.store.read(run, OWNER, 0))?.takeovers ?? [];
    expect([before, after]).toEqual(Array(2).fill({ seq: 2, mark: expect.stringMatching(/^[0-9a-f]{8}$/) }));
    expect(after?.mark).not.toBe(before?.mark);
    await expect(first.store.append(forgotten, [textRecord(2, 'x')])).rejects.toBeInstanceOf(StaleLeaseError);
    await expect(first.store.finish(forgotten, COMPLETE)).rejects.toBeInstanceOf(StaleLeaseError);
    await first.store.release(forgotten);
    expect(await second.store.append(lease, [textRecord(2, 'c')])).toBe(3);
    expect(await second.text(lease)).toBe('abc');
  });

  describe('gives a run back to the replica that delivers it although it has lost the lease', () => {
    const SALVAGED = { status: 'recovered_from_partial', at_ms: 0, cause: 'replica_lost' } as const;
    /** A replica that has lost its lease, and the lease of the replica that took over. */
    async function lose() {
      const [{ store }, other] = await openPair();
      const lost = await begin(store);
      const { run } = lost;
      return { store, other: other.store, lost, run, taken: await other.store.acquire(run, OWNER, 1) };
    }

    test('after others have salvaged it', async () => {
      const { store, other, lost, run, taken } = await lose();
      await other.finish(taken, SALVAGED);
      const mark = newMark();
      const lease = await store.takeBack(lost, 2, mark);
      const takeovers = [{ seq: 2 }, { seq: 2, mark }];
      expect(await other.read(run, OWNER, 0)).toMatchObject({ status: 'running', epoch: 3, takeovers });
      await store.append(lease, [textRecord(2, 'c', 'd')]);
      await store.finish(lease, COMPLETE);
      const stored = await other.read(run, OWNER, 0);
      expect(stored).toMatchObject({ status: 'complete', seq: 4, takeovers });
      expect(textOf(stored?.records ?? [])).toBe('abcd');
      expect((await other.read(run, OWNER, 3))?.records).toMatchObject([{ seq: 4 }]);
      await expect(store.append(lost, [textRecord(2, 'x')])).rejects.toThrow(StaleLeaseError);
      await expect(other.append(taken, [textRecord(2, 'x')])).rejects.toThrow(StaleLeaseError);
    });

    test('after it was handed over', async () => {
      const { store, other, lost, run, taken } = await lose();
      await other.release(taken);
      await store.takeBack(lost, 3, newMark());
      expect(await other.read(run, OWNER, 0)).toMatchObject({ epoch: 4, holder: { state: 'alive' } });
    });

    test('of two replicas that want it, to one', async () => {
      const { store, other, lost, run, taken } = await lose();
      await other.release(taken);
      const wins = await Promise.allSettled([
        store.takeBack(lost, 3, newMark()),
        other.acquire(run, OWNER, 3),
      ]);
      expect(wins.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    });

    test('whose lease Redis never acknowledged, if nothing of it is stored', async () => {
      const [{ store }, other] = await openPair();
      const { run } = await other.store.acquire(newRunId(), OWNER);
      const never: Lease = { run, owner: OWNER, epoch: 1 };
      await other.store.append(await other.store.acquire(run, OWNER, 1), [HEADER_RECORD]);
      const lease = await store.takeBack(never, 2, newMark());
      await other.store.append(await other.store.acquire(run, OWNER, 3), [textRecord(0, 'x')]);
      await expect(store.append(lease, [textRecord(0, 'a')])).rejects.toThrow(StaleLeaseError);
      await expect(store.takeBack(never, 4, newMark())).rejects.toThrow('taken');
    });

    test('but not once it has ended in another way', async () => {
      const { store, other, lost, taken } = await lose();
      await other.finish(taken, { status: 'cancelled', at_ms: 0 });
      await expect(store.takeBack(lost, 2, newMark())).rejects.toThrow('finished');
    });

    test('but not to a stranger, and not once another replica has it again', async () => {
      const { store, other, lost, run, taken } = await lose();
      await expect(store.takeBack({ ...lost, owner: STRANGER }, 2, newMark())).rejects.toThrow('foreign');
      await other.release(taken);
      await other.acquire(run, OWNER, 3);
      await expect(store.takeBack(lost, 3, newMark())).rejects.toThrow('taken');
    });

    test('but not if Redis has forgotten the lease, and another replica has begun the run anew', async () => {
      const { store, other, lost, run } = await lose();
      await server.admin.del(logOf(run));
      const anew = await other.acquire(run, OWNER);
      await other.append(anew, [HEADER_RECORD, textRecord(0, 'x', 'y')]);
      await other.release(anew);
      await expect(store.takeBack(lost, 2, newMark())).rejects.toThrow('taken');
    });
  });

  test('reads from any cursor what a reader of the whole finds behind it', async () => {
    const [{ store }, other] = await openPair();
    let lease = await begin(store);
    const { run } = lease;
    let seq = 2;
    for (let epoch = 1; epoch <= 4; epoch++) {
      // More entries than one reply holds.
      for (let i = 0; i < 270; i++) {
        const texts = [...'wxyz'].slice(0, 1 + (i % 3));
        await store.append(lease, [textRecord(seq, ...texts)]);
        seq += texts.length;
      }
      if (epoch < 4) lease = await store.acquire(run, OWNER, epoch);
    }
    for (const ending of [() => {}, () => store.finish(lease, COMPLETE)]) {
      await ending();
      const whole = await other.store.read(run, OWNER, 0);
      expect(whole?.seq).toBe(seq);
      for (let from = 1; from <= seq + 3; from += from > seq - 10 ? 1 : 151) {
        const records = whole?.records.filter((record) => record.seq > from);
        const tail = await other.store.read(run, OWNER, from);
        expect({ ...tail, holder: undefined }).toEqual({ ...whole, holder: undefined, records });
      }
    }
  });

  test('asks for nothing but the end of a long run when that is all a reader needs', async () => {
    const { store } = await open();
    const lease = await begin(store);
    for (let i = 0; i < 50; i++) await store.append(lease, [textRecord(2 + i, 'x'.repeat(10_000))]);
    const sent = async () =>
      Number(/total_net_output_bytes:(\d+)/.exec(await server.admin.info('stats'))?.[1]);
    await store.read(lease.run, OWNER, 0);
    const before = await sent();
    const stored = await store.read(lease.run, OWNER, 51);
    expect(stored?.records).toHaveLength(1);
    expect((await sent()) - before).toBeLessThan(50_000);
  });

  test('keeps requests of any size', async () => {
    const { store } = await open();
    const run = newRunId();
    const body = 'ü"\n'.repeat(3_000_000);
    const record = { ...HEADER_RECORD, header: { ...HEADER_RECORD.header, body } } as typeof HEADER_RECORD;
    await store.append(await store.acquire(run, OWNER), [record]);
    expect((await store.read(run, OWNER, 0))?.records).toEqual([record]);
  });

  test('has nothing legible in Redis when it is sealed', async () => {
    const observed = await open({ seal: createSeal([SEALING_KEY]) });
    const { store } = observed;
    const lease = await store.acquire(newRunId(), OWNER);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'legible')]);
    await store.notes.put(OWNER, { kind: 'thread', name: 'name of a thread' }, 'legible', 10_000);
    expect(await observed.text(lease)).toBe('legible');
    const dumped: string[] = [];
    for (const key of await server.admin.keys('*')) {
      const value = await server.admin
        .call((await server.admin.type(key)) === 'stream' ? 'XRANGE' : 'GET', ...[])
        .catch(() => '');
      dumped.push(key, JSON.stringify(value));
    }
    dumped.push(JSON.stringify(await server.admin.xrange(logOf(lease.run), '-', '+')));
    for (const key of await server.admin.keys('holdfast:note:*'))
      dumped.push(String(await server.admin.get(key)));
    expect(dumped.join('\n')).toContain(lease.run);
    expect(dumped.join('\n')).not.toMatch(/legible|gpt-test|name of a thread/);
  });

  test('replaces a damaged note by a new one, and reports that once', async () => {
    const [{ store, damages }, other] = await openPair();
    const key = { kind: 'idempotency', name: 'a key' } as const;
    await store.notes.put(OWNER, key, 'old', 10_000);
    const [name = ''] = await server.admin.keys('holdfast:note:*');
    await server.admin.set(name, Buffer.from([0xff, 0x00, 0xc3]));
    for (let time = 0; time < 3; time++) expect(await store.notes.get(OWNER, key)).toBeUndefined();
    expect(damages.map(({ message }) => message)).toEqual([
      `the idempotency note ${name.slice('holdfast:note:'.length)} is damaged, ` +
        'without a proof, or sealed with a key that is not configured; it counts as none',
    ]);
    expect(await store.notes.claim(OWNER, key, 'new', 10_000)).toBe('new');
    expect(await server.admin.pttl(name)).toBeGreaterThan(0);
    expect(await other.store.notes.claim(OWNER, key, 'newer', 10_000)).toBe('new');
    expect(damages).toHaveLength(1);
    expect(other.damages).toEqual([]);
  });

  describe('lets everything expire', () => {
    test('that it has ever written', async () => {
      const [{ store }, other] = await openPair();
      await storeRun(store, newRunId(), SMALL_RUN);
      await store.release(await begin(store));
      await begin(store);
      await store.notes.put(OWNER, { kind: 'thread', name: 'x' }, 'x', 10_000);
      await store.notes.claim(OWNER, { kind: 'thread', name: 'y' }, 'y', 10_000);
      await Promise.all([store.check(), other.store.check()]);
      const keys = await server.admin.keys('*');
      expect(keys.length).toBeGreaterThanOrEqual(8);
      for (const key of keys)
        expect([key, await server.admin.pttl(key)]).toEqual([
          key,
          expect.toSatisfy((ttl: number) => ttl > 0),
        ]);
    });

    describe('a complete run', () => {
      /** A complete run and a failed one. */
      async function finishTwo(store: RedisStore): Promise<readonly [RunId, RunId]> {
        const complete = newRunId();
        await storeRun(store, complete, SMALL_RUN);
        const lease = await begin(store);
        await store.finish(lease, FAILED);
        return [complete, lease.run];
      }

      test('earlier than others, where that is asked for', async () => {
        const { store } = await open({ complete_ttl_ms: 60_000 });
        const [complete, failed] = await finishTwo(store);
        const [left_ms, others_ms] = [
          await server.admin.pttl(logOf(complete)),
          await server.admin.pttl(logOf(failed)),
        ];
        expect(left_ms).toBeGreaterThan(0);
        expect(left_ms).toBeLessThanOrEqual(60_000);
        expect(others_ms).toBeGreaterThan(60_000);
      });

      test('and only that one', async () => {
        const { store } = await open({ complete_ttl_ms: 300 });
        const [complete, failed] = await finishTwo(store);
        await vi.waitFor(async () => expect(await store.read(complete, OWNER, 0)).toBeNull(), {
          timeout: 5000,
        });
        expect(await store.read(failed, OWNER, 0)).toMatchObject({ status: 'failed' });
      });

      test('no later than others, whatever is asked for', async () => {
        const { store } = await open({ ttl_ms: 60_000, complete_ttl_ms: 3_600_000 });
        const [complete] = await finishTwo(store);
        expect(await server.admin.pttl(logOf(complete))).toBeLessThanOrEqual(60_000);
      });
    });

    describe('but not a run that is under way', () => {
      const TTL_MS = 400;
      const silence = (duration_ms: number) => new Promise((resolve) => setTimeout(resolve, duration_ms));
      const SHORT = { ttl_ms: TTL_MS, complete_ttl_ms: TTL_MS / 2, lease_ms: 90 };
      const untilGone = (store: RedisStore, { run }: Lease) =>
        vi.waitFor(async () => expect(await store.read(run, OWNER, 0)).toBeNull(), { timeout: 5000 });

      test('and is appended to', async () => {
        const observed = await open(SHORT);
        const { store } = observed;
        const lease = await begin(store);
        for (let i = 0; i < 12; i++) {
          await silence(100);
          await store.append(lease, [textRecord(2 + i, 'c')]);
        }
        expect(await observed.text(lease)).toBe(`ab${'c'.repeat(12)}`);
        await server.admin.del(logOf(lease.run));
        await expect(store.append(lease, [textRecord(14, 'x')])).rejects.toBeInstanceOf(JournalGapError);
      });

      test('and silent for longer than it is kept: it goes when it has ended, and its replica lives on', async () => {
        const observed = await open(SHORT);
        const { store } = observed;
        const [silent, before] = [await begin(store), await store.acquire(newRunId(), OWNER)];
        await silence(4 * TTL_MS);
        expect(await store.append(silent, [textRecord(2, 'c')])).toBe(3);
        expect(await store.append(before, [HEADER_RECORD])).toBe(0);
        expect(await observed.text(silent)).toBe('abc');
        const ended_ms = performance.now();
        await store.finish(silent, FAILED);
        expect(await server.admin.pttl(logOf(silent.run))).toBeGreaterThan(TTL_MS - 100);
        await untilGone(store, silent);
        expect(performance.now() - ended_ms).toBeLessThan(2 * TTL_MS);
        expect(await store.append(before, [textRecord(0, 'a')])).toBe(1);
      });

      test('and was taken over: only the one that holds it keeps it', async () => {
        const [first, second] = (await openAll(2, SHORT)) as [ObservedStore, ObservedStore];
        const lease = await begin(first.store);
        const next = await second.store.acquire(lease.run, OWNER, 1);
        await silence(3 * TTL_MS);
        expect(await second.text(next)).toBe('ab');
        await second.store.finish(next, COMPLETE);
        await untilGone(first.store, lease);
      });

      test('unless its replica dies', async () => {
        const [first, second] = (await openAll(2, SHORT)) as [ObservedStore, ObservedStore];
        const lease = await begin(first.store);
        await first.store.close();
        await untilGone(second.store, lease);
      });
    });
  });

  describe('finds orphans', () => {
    const commands = async () =>
      Number(/total_commands_processed:(\d+)/.exec(await server.admin.info('stats'))?.[1]);

    test('without looking at runs that are none', async () => {
      const [{ store }, dead] = await openPair();
      for (let i = 0; i < 300; i++) {
        await storeRun(store, newRunId(), [HEADER_RECORD]);
        await storeRun(dead.store, newRunId(), [HEADER_RECORD]);
        if (i % 3 === 0) await begin(store);
      }
      const orphans = [await begin(dead.store), await begin(dead.store)];
      await dead.store.close();
      const before = await commands();
      const found = await store.orphans(100);
      expect(new Set(found.map(({ run }) => run))).toEqual(new Set(orphans.map(({ run }) => run)));
      expect((await commands()) - before).toBeLessThan(60);
    });

    const knownReplicas = async (): Promise<number> =>
      (await Promise.all(REPLICAS_KEYS.map((key) => server.admin.scard(key)))).reduce(
        (sum, count) => sum + count,
      );

    test('and forgets replicas that have left none', async () => {
      const [{ store }, gone, dead] = (await openAll(3)) as [ObservedStore, ObservedStore, ObservedStore];
      await storeRun(gone.store, newRunId(), SMALL_RUN);
      const orphan = await begin(dead.store);
      await Promise.all([gone.store.close(), dead.store.close()]);
      expect(await knownReplicas()).toBe(3);
      expect(await store.orphans(10)).toMatchObject([{ run: orphan.run }]);
      expect(await knownReplicas()).toBe(2);
      const lease = await store.acquire(orphan.run, OWNER, 1);
      await store.finish(lease, { status: 'recovered_from_partial', at_ms: 1 });
      expect(await store.orphans(10)).toEqual([]);
      expect(await store.orphans(10)).toEqual([]);
      expect(await knownReplicas()).toBe(1);
    });
  });
}
