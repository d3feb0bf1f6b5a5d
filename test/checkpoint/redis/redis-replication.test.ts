import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { NotReplicatedError } from '../../../src/checkpoint/redis/replication.ts';
import type { RedisStore } from '../../../src/checkpoint/redis/store.ts';
import { type Lease, type RunId, StaleLeaseError } from '../../../src/checkpoint/store.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { ObservedStore } from '../../redis/observed-store.ts';
import { follow, RedisSentinel } from '../../redis/redis-sentinel.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { HEADER_RECORD, newRunId, OWNER, textRecord } from '../fixtures.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const WAIT_MS = 400;
const REPLICATED = { replication: { wait_replicas: 1, wait_ms: WAIT_MS } };

const binary = await redisBinary();

if ('missing' in binary) test('the replication of leases', needs(binary), () => {});
else {
  const { path } = binary;
  describe('a lease that replicas of Redis have to have', () => describeWaiting(path));
  describe('a takeover that Redis acknowledged before a failover', () => describeFailover(path));
  describe('a store says how Redis may lose what it has acknowledged', () => describeDoubts(path));
}

async function begin(store: RedisStore): Promise<Lease> {
  const lease = await store.acquire(newRunId(), OWNER);
  await store.append(lease, [HEADER_RECORD, textRecord(0, 'a', 'b')]);
  return lease;
}

const logOf = (run: RunId): string => `holdfast:{${run}}:log`;

function describeWaiting(path: string): void {
  let master: RedisServer;
  let replica: RedisServer;
  beforeAll(async () => {
    master = await RedisServer.start({ binary: path });
    replica = await RedisServer.start({ binary: path });
    await follow(replica, master);
    // Redis counts a replica only after its first acknowledgement.
    await master.admin.set('synchronized', 'yes');
    expect(await master.admin.wait(1, 15_000)).toBe(1);
  });
  afterAll(async () => {
    for (const server of [replica, master]) await server.stop();
  });

  const openingsOf = async (server: RedisServer, run: RunId): Promise<string[]> =>
    (await server.admin.xrange(logOf(run), '-', '+')).map(([id]) => id);

  test('is given once they have it', async () => {
    const { store } = await ObservedStore.open(master.url, REPLICATED);
    for (let i = 0; i < 50; i++) {
      const { run } = await store.acquire(newRunId(), OWNER);
      expect(await openingsOf(replica, run)).toEqual(['1-0']);
      await store.acquire(run, OWNER, 1);
      expect(await openingsOf(replica, run)).toEqual(['1-0', '2-0']);
    }
  });

  test('is asked about together with others that are begun at the same time', async () => {
    const { store } = await ObservedStore.open(master.url, REPLICATED);
    await master.admin.config('RESETSTAT');
    await Promise.all(Array.from({ length: 200 }, () => store.acquire(newRunId(), OWNER)));
    const calls = await master.calls('wait');
    expect(calls).toBeGreaterThan(0);
    expect(calls).toBeLessThan(50);
  });

  test('is not given when they do not, which delays nothing else; it is given back, and to be had later', async () => {
    const observed = await ObservedStore.open(master.url, REPLICATED);
    const { store } = observed;
    const healthy = await begin(store);
    const held = await begin(store);
    replica.pause();
    onTestFinished(() => replica.resume());
    const run = newRunId();
    const started_ms = performance.now();
    const refusals = Promise.allSettled([
      store.acquire(run, OWNER),
      store.acquire(newRunId(), OWNER),
      store.acquire(held.run, OWNER, 1),
    ]);
    for (let i = 0; i < 20; i++) await store.append(healthy, [textRecord(2 + i, 'c')]);
    await store.check();
    expect(performance.now() - started_ms).toBeLessThan(WAIT_MS);
    for (const refusal of await refusals) {
      const { reason } = refusal as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(NotReplicatedError);
      expect(String(reason)).toContain('0 of 1 replicas');
    }
    expect(performance.now() - started_ms).toBeLessThan(3 * WAIT_MS);

    replica.resume();
    await vi.waitFor(async () => {
      const stored = await store.read(held.run, OWNER, 0);
      expect(stored).toMatchObject({ epoch: 3, holder: { state: 'released' }, seq: 2 });
    });
    // The previous holder is fenced because Redis has the takeover.
    await expect(store.append(held, [textRecord(2, 'c')])).rejects.toBeInstanceOf(StaleLeaseError);
    const next = await store.acquire(held.run, OWNER, 3);
    expect(await store.append(next, [textRecord(2, 'c')])).toBe(3);
    const fresh = await store.acquire(
      run,
      OWNER,
      (await observed.read({ run, owner: OWNER, epoch: 1 })).epoch,
    );
    expect(await store.append(fresh, [HEADER_RECORD])).toBe(0);
    expect(observed.outages).toEqual([]);
  });

  test('is not given when the connection breaks before that is known', async () => {
    const { store } = await ObservedStore.open(master.url, REPLICATED);
    replica.pause();
    onTestFinished(() => replica.resume());
    const refused = expect(store.acquire(newRunId(), OWNER)).rejects.toThrow();
    await vi.waitFor(async () => expect(await master.admin.info('clients')).toMatch(/^blocked_clients:1/m));
    await master.admin.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await refused;
  });
}

function describeFailover(path: string): void {
  /** A holder, and a replica that takes its run over. */
  async function setUp(settings: object) {
    const servers = await RedisSentinel.start(path);
    onTestFinished(() => servers.stop());
    const [first, second] = [
      await ObservedStore.open(servers.url),
      await ObservedStore.open(servers.url, settings),
    ];
    const lease = await begin(first.store);
    // Redis counts a replica only after its first acknowledgement.
    await servers.synchronize();
    return { servers, first, second, lease };
  }

  test('is there after it, however soon that comes', async () => {
    const { servers, second, lease } = await setUp(REPLICATED);
    const next = await second.store.acquire(lease.run, OWNER, 1);
    await servers.loseWhat(async () => {});
    await vi.waitFor(() => second.store.check(), { timeout: 15_000 });
    expect(await second.store.append(next, [textRecord(2, 'c')])).toBe(3);
    expect(await second.text(next)).toBe('abc');
  });

  test('is acknowledged only where it would be there: the holder before it delivers on', async () => {
    const { servers, first, second, lease } = await setUp(REPLICATED);
    await servers.loseWhat(async () => {
      await expect(second.store.acquire(lease.run, OWNER, 1)).rejects.toBeInstanceOf(NotReplicatedError);
    });
    await vi.waitFor(() => first.store.check(), { timeout: 15_000 });
    expect(await first.store.append(lease, [textRecord(2, 'c')])).toBe(3);
    expect(await first.text(lease)).toBe('abc');
  });

  test('is lost with the default, and both have had the run', async () => {
    const { servers, first, second, lease } = await setUp({});
    await servers.loseWhat(async () => {
      await second.store.acquire(lease.run, OWNER, 1);
    });
    await vi.waitFor(() => first.store.check(), { timeout: 15_000 });
    expect(await first.store.append(lease, [textRecord(2, 'c')])).toBe(3);
  });
}

function describeDoubts(path: string): void {
  const start = async (...configuration: string[]): Promise<RedisServer> => {
    const server = await RedisServer.start({ binary: path, configuration });
    onTestFinished(() => server.stop());
    return server;
  };
  const settled = () => new Promise((resolve) => setTimeout(resolve, 200));

  test('once each, at the start', async () => {
    const master = await start('maxmemory 100mb', 'maxmemory-policy volatile-lru');
    await follow(await start(), master);
    const { doubts, store } = await ObservedStore.open(master.url);
    await vi.waitFor(() => expect(doubts).toHaveLength(3));
    expect(doubts).toEqual([
      expect.stringContaining('maxmemory-policy is volatile-lru'),
      expect.stringContaining('appendonly is no'),
      expect.stringContaining('min-replicas-to-write is 0'),
    ]);
    await master.admin.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await vi.waitFor(() => store.check());
    await settled();
    expect(doubts).toHaveLength(3);
  });

  test('and nothing where there is nothing to say, or Redis does not tell', async () => {
    const sound = await start('appendonly yes', 'maxmemory-policy noeviction');
    const silent = await start('user me on >hunter2 ~* +@all -info -config');
    const observed = [
      await ObservedStore.open(sound.url),
      await ObservedStore.open(silent.url.replace('//', '//me:hunter2@')),
    ];
    await settled();
    for (const { doubts, store } of observed) {
      expect(doubts).toEqual([]);
      await store.check();
    }
  });
}
