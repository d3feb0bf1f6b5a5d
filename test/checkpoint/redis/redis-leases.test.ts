import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { NOTHING_STORED } from '../../../src/checkpoint/append-order.ts';
import { parseRedisUrl } from '../../../src/checkpoint/redis/address.ts';
import { RedisConnection } from '../../../src/checkpoint/redis/connection.ts';
import { logKey, releasedList, runsKey } from '../../../src/checkpoint/redis/keys.ts';
import { RedisLeases } from '../../../src/checkpoint/redis/leases.ts';
import { RedisRunLists } from '../../../src/checkpoint/redis/run-index.ts';
import type { Lease } from '../../../src/checkpoint/store.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { SETTLES_MS } from '../../redis/observed-store.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { newRunId, OWNER } from '../fixtures.ts';

vi.setConfig({ testTimeout: 60_000 });

const TTL_MS = 600_000;

const binary = await redisBinary();

if ('missing' in binary) test('leases in Redis', needs(binary), () => {});
else describe('leases that could not be given back', () => describeReturning(binary.path));

function describeReturning(path: string): void {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start({ binary: path });
  });
  beforeEach(() => letMemory('0'));
  afterAll(() => server.stop());

  const letMemory = (maxmemory: string) => server.admin.config('SET', 'maxmemory', maxmemory);

  async function connect(replica: string): Promise<RedisLeases> {
    const connection = new RedisConnection(parseRedisUrl(server.url));
    onTestFinished(() => connection.close());
    await connection.start(async () => {});
    const lists = new RedisRunLists(connection, TTL_MS);
    const kept = { keep_ms: TTL_MS, ttl_ms: TTL_MS, complete_ttl_ms: TTL_MS };
    return new RedisLeases({
      connection,
      lists,
      replica,
      seal: undefined,
      rewritable_bytes: 0,
      ...kept,
    });
  }

  async function open(leases: RedisLeases, count: number): Promise<Lease[]> {
    const after = { base: NOTHING_STORED, takeovers: [] };
    const fresh = Array.from({ length: count }, () => ({ run: newRunId(), owner: OWNER, epoch: 1 }));
    return Promise.all(fresh.map(async (lease) => (await leases.open(lease, '', after)) ?? lease));
  }

  /** Tries to release the leases, one after the other, while Redis is out of memory. */
  async function failToRelease(leases: RedisLeases, held: readonly Lease[]): Promise<void> {
    await letMemory('1');
    for (const lease of held) await expect(leases.release(lease)).rejects.toThrow('OOM');
  }

  /** Replaces the run's log with a value that no script can work on; the returned function restores it. */
  async function putAside({ run }: Lease): Promise<() => Promise<unknown>> {
    const aside = `aside:${run}`;
    await server.admin.rename(logKey(run), aside);
    await server.admin.set(logKey(run), 'no log');
    return () => server.admin.rename(aside, logKey(run));
  }

  const isReleased = async ({ run }: Lease): Promise<boolean> =>
    (await server.admin.xrevrange(logKey(run), '+', '-', 'COUNT', 1))[0]?.[0] === '2-0';
  const released = async (held: readonly Lease[]): Promise<number> =>
    (await Promise.all(held.map(isReleased))).filter(Boolean).length;

  /** Whether a release of the lease was attempted since the last call. */
  const wasTried = async ({ run }: Lease): Promise<boolean> =>
    (await server.admin.srem(runsKey(releasedList(run)), `${run}:2`)) === 1;

  test('get a try each, whatever happens to the others, until they are given back or never can be', async () => {
    const [leases, other] = [await connect('one'), await connect('another')];
    const [broken, lost, taken, ...sound] = (await open(leases, 6)) as [Lease, Lease, Lease, ...Lease[]];
    const mend = await putAside(broken);
    await server.admin.del(logKey(lost.run));
    await other.open({ ...taken, epoch: 2 }, '1-0', { base: NOTHING_STORED, takeovers: [{ seq: 0 }] });
    await failToRelease(leases, [broken, lost, taken, ...sound]);
    await letMemory('0');
    for (const lease of [broken, lost, taken, ...sound]) await wasTried(lease);

    await leases.returnLeases();
    expect(await released(sound)).toBe(3);
    for (const lease of [broken, lost, taken, ...sound]) expect(await wasTried(lease)).toBe(true);

    await leases.returnLeases();
    expect(await wasTried(broken)).toBe(true);
    for (const lease of [lost, taken, ...sound]) expect(await wasTried(lease)).toBe(false);

    await mend();
    await leases.returnLeases();
    expect(await isReleased(broken)).toBe(true);
    expect(await wasTried(broken)).toBe(true);
    await leases.returnLeases();
    expect(await wasTried(broken)).toBe(false);
  });

  test('are not kept from it by any number of others that fail', async () => {
    const leases = await connect('one');
    const broken = await open(leases, 250);
    for (const lease of broken) await putAside(lease);
    const [sound] = (await open(leases, 1)) as [Lease];
    await failToRelease(leases, [...broken, sound]);
    await letMemory('0');
    await vi.waitFor(
      async () => {
        await leases.returnLeases();
        expect(await isReleased(sound)).toBe(true);
      },
      { timeout: 10_000, interval: 1 },
    );
  });

  test('are not all asked for while Redis refuses every one of them, and all given back as soon as it does not', async () => {
    const leases = await connect('one');
    const held = await open(leases, 500);
    await failToRelease(leases, held);
    await server.admin.config('RESETSTAT');
    await leases.returnLeases();
    const refusals = /errorstat_OOM:count=(\d+)/.exec(await server.admin.info('errorstats'))?.[1];
    expect(Number(refusals)).toBeGreaterThan(0);
    expect(Number(refusals)).toBeLessThan(held.length / 2);
    await letMemory('0');
    await leases.returnLeases();
    expect(await released(held)).toBe(held.length);
  });

  test('do not wait for Redis one after the other when it hangs', async () => {
    const leases = await connect('one');
    const held = await open(leases, 500);
    await failToRelease(leases, held);
    await letMemory('0');
    server.pause();
    try {
      const started_ms = performance.now();
      await leases.returnLeases();
      expect(performance.now() - started_ms).toBeLessThan(SETTLES_MS);
    } finally {
      server.resume();
    }
    await vi.waitFor(
      async () => {
        await leases.returnLeases();
        expect(await released(held)).toBe(held.length);
      },
      { timeout: 20_000, interval: 50 },
    );
  });
}
