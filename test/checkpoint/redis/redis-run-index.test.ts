import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { RUN_LASTS_MS, RUNS_INDEXED_MAX } from '../../../src/checkpoint/run-index.ts';
import { createSeal } from '../../../src/checkpoint/seal.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { ObservedStore } from '../../redis/observed-store.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { COMPLETE, HEADER, newRunId, OWNER, SEALING_KEY, textRecord } from '../fixtures.ts';

vi.setConfig({ testTimeout: 60_000 });

const TTL_MS = 60_000;
const THREAD = 'a thread that no one else may know';
const INDEX = `holdfast:{${OWNER}}:index`;

const binary = await redisBinary();

if ('missing' in binary) test('the Redis index', needs(binary), () => {});
else describe('the index in Redis', () => describeIndex(binary.path));

function describeIndex(path: string): void {
  let server: RedisServer;
  let databases = 0;
  beforeAll(async () => {
    server = await RedisServer.start({ binary: path });
  });
  afterAll(() => server.stop());

  async function open(settings: Parameters<typeof ObservedStore.open>[1] = {}) {
    const database = databases++;
    await server.admin.select(database);
    return ObservedStore.open(`${server.url}/${database}`, { ttl_ms: TTL_MS, ...settings });
  }

  async function begin({ store }: ObservedStore, created_at_ms: number = HEADER.created_at_ms) {
    const lease = await store.acquire(newRunId(), OWNER);
    const header = { ...HEADER, created_at_ms, thread: THREAD };
    await store.append(lease, [{ seq: 0, header, events: [] }]);
    return lease;
  }

  const listed = async ({ store }: ObservedStore, thread?: string) =>
    (await store.index.list(OWNER, thread)).map(({ run }) => run);

  const calls = (command: string) => server.calls(command);

  test('is one key per owner, which lives as long as a run that lasts a day', async () => {
    const observed = await open();
    const lease = await begin(observed);
    expect(await listed(observed)).toEqual([lease.run]);
    expect(await server.admin.keys('*:index')).toEqual([INDEX]);
    expect(await server.admin.type(INDEX)).toBe('zset');
    const left_ms = await server.admin.pttl(INDEX);
    expect(left_ms).toBeGreaterThan(TTL_MS + RUN_LASTS_MS - 10_000);
    expect(left_ms).toBeLessThanOrEqual(TTL_MS + RUN_LASTS_MS);
  });

  test('costs one command when a run begins, and none for its events and its end', async () => {
    const observed = await open();
    await begin(observed);
    const before = { zadd: await calls('zadd'), evalsha: await calls('evalsha') };
    const lease = await begin(observed);
    // The opening of the epoch, the header, and the index.
    expect([(await calls('zadd')) - before.zadd, (await calls('evalsha')) - before.evalsha]).toEqual([1, 3]);
    for (let seq = 0; seq < 20; seq++) await observed.store.append(lease, [textRecord(seq, 'a')]);
    await observed.store.finish(lease, COMPLETE);
    expect([(await calls('zadd')) - before.zadd, (await calls('evalsha')) - before.evalsha]).toEqual([1, 24]);
  });

  test('that fails keeps no run from being stored, and is not taken for an empty one', async () => {
    const observed = await open();
    await server.admin.set(INDEX, 'in the way');
    const lease = await begin(observed);
    expect(await observed.store.append(lease, [textRecord(0, 'a')])).toBe(1);
    await observed.store.finish(lease, COMPLETE);
    expect(await observed.store.read(lease.run, OWNER, 0)).toMatchObject({ status: 'complete', seq: 1 });
    await expect(observed.store.index.list(OWNER)).rejects.toThrow('WRONGTYPE');
  });

  test('is listed without what is damaged in it', async () => {
    const observed = await open();
    const { run } = await begin(observed);
    await server.admin.zadd(INDEX, 1, 'damaged', 9e15, `9.${run}.`, 3, '');
    expect(await listed(observed)).toEqual([run]);
    expect(await listed(observed, THREAD)).toEqual([run]);
  });

  test('loses what is too old for its runs to be there when another run begins', async () => {
    const observed = await open();
    const old = await begin(observed, HEADER.created_at_ms - TTL_MS - RUN_LASTS_MS - 1);
    const young = await begin(observed, HEADER.created_at_ms - TTL_MS - RUN_LASTS_MS);
    expect(await listed(observed)).toEqual([young.run, old.run]);
    const latest = await begin(observed);
    expect(await listed(observed)).toEqual([latest.run, young.run]);
  });

  test('holds so many entries of an owner and no more: the oldest make room', async () => {
    const observed = await open();
    const before_ms = HEADER.created_at_ms - RUNS_INDEXED_MAX;
    const entries = Array.from({ length: RUNS_INDEXED_MAX }, (_, i) => `${before_ms + i}.${newRunId()}`);
    await server.admin.zadd(INDEX, ...entries.flatMap((entry, i) => [before_ms + i, entry]));
    const { run } = await begin(observed);
    expect((await listed(observed))[0]).toBe(run);
    expect(await server.admin.zcard(INDEX)).toBe(RUNS_INDEXED_MAX);
    expect((await server.admin.zrange(INDEX, 0, '0'))[0]).toBe(entries[1]);
  });

  test('loses a run that is purged, under whatever key its thread was entered', async () => {
    const observed = await open();
    const lease = await begin(observed);
    await observed.store.finish(lease, COMPLETE);
    const later = await ObservedStore.open(`${server.url}/${databases - 1}`, {
      ttl_ms: TTL_MS,
      // The run is older than the sealing key.
      seal: createSeal([SEALING_KEY], true),
    });
    await later.store.purge(lease.run, OWNER);
    expect(await server.admin.exists(INDEX)).toBe(0);
  });

  test('says nothing of a thread where the store is sealed', async () => {
    const sealed = await open({ seal: createSeal([SEALING_KEY]) });
    const { run } = await begin(sealed);
    expect(await listed(sealed, THREAD)).toEqual([run]);
    const members = await server.admin.zrange(INDEX, 0, '-1');
    expect(members.join()).toMatch(new RegExp(`^\\d+\\.${run}\\.[\\w-]{16}$`));
  });
}
