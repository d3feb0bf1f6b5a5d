import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, test } from 'vitest';
import type { Store } from '../../../src/checkpoint/store.ts';
import { StoreConfigurationError } from '../../../src/checkpoint/store.ts';
import { systemTime } from '../../../src/lib/time.ts';
import { type OpenStoreOptions, openStore } from '../../../src/server/open-store.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { freePort } from '../../redis/free-port.ts';
import { RedisCluster } from '../../redis/redis-cluster.ts';
import { follow, RedisSentinel } from '../../redis/redis-sentinel.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { HEADER_RECORD, newRunId, OWNER } from '../fixtures.ts';

const PASSWORD = 'hunter2@:/%';
const ENCODED = encodeURIComponent(PASSWORD);
const DOCUMENT = new URL('../../../docs/stores.md', import.meta.url);
const UNREACHABLE = 'serve without checkpoints meanwhile with checkpoint.on_unreachable: warn';

/** Opens the store and records what it reports. */
function opening(url: string, options: Partial<OpenStoreOptions> = {}) {
  const outages: string[] = [];
  const recovered = Promise.withResolvers<void>();
  const store = openStore(url, {
    time: systemTime,
    ttl_s: 60,
    lease_ms: 600,
    sealing_keys: [],
    secret: 'the secret of a deployment',
    on_unreachable: 'fail',
    onError: (error) => expect.unreachable(error.message),
    onOutage: ({ message }) => outages.push(message),
    onRecovery: () => recovered.resolve(),
    ...options,
  });
  return { store, outages, recovered: recovered.promise };
}

async function expectRefusal(url: string, remedy: string, options: Partial<OpenStoreOptions> = {}) {
  const error = await opening(url, options).store.then(
    () => expect.unreachable('it was opened'),
    (refusal: unknown) => refusal,
  );
  expect(error).toBeInstanceOf(StoreConfigurationError);
  const { message, cause } = error as Error;
  expect(message).toMatch(/^checkpoint\.store: /);
  expect(message).toContain(remedy);
  expect(message).not.toContain('hunter2');
  expect(cause).toBeUndefined();
}

async function expectWorking(store: Store): Promise<void> {
  await store.check();
  const lease = await store.acquire(newRunId(), OWNER);
  expect(await store.append(lease, [HEADER_RECORD])).toBe(0);
}

async function expectOpened(url: string): Promise<void> {
  const store = await opening(url).store;
  await expectWorking(store);
  await store.close();
}

const binary = await redisBinary();

if ('missing' in binary) {
  test('Redis at start', needs(binary), () => {});
} else {
  const { path } = binary;
  const server = await RedisServer.start({ binary: path, configuration: [`requirepass "${PASSWORD}"`] });
  afterAll(() => server.stop());

  const here = `127.0.0.1:${server.port}`;

  describe.concurrent('Redis at start', () => {
    test.each([
      ['an encoded password', `redis://:${ENCODED}@${here}`],
      ['a password as it is, but for the %', `redis://:${PASSWORD.replace('%', '%25')}@${here}`],
      ['a user', `redis://default:${ENCODED}@localhost:${server.port}`],
      ['a database', `redis://:${ENCODED}@${here}/3`],
    ])('is entered with %s', async (_, url) => {
      await expectOpened(url);
    });

    test('keeps the databases apart', async () => {
      await expectOpened(`redis://:${ENCODED}@${here}/7`);
      const client = new Redis({ port: server.port, password: PASSWORD, db: 7 });
      expect(await client.keys('holdfast:{run_*')).toHaveLength(1);
      client.disconnect();
    });

    const permanent = [
      [`redis://:hunter2@${here}`, 'check the user and the password'],
      [`redis://me:hunter2@${here}`, 'check the user and the password'],
      [`redis://${here}`, 'check the user and the password'],
      [`redis+cluster://:hunter2@${here}`, 'check the user and the password'],
      [`redis://:${ENCODED}@${here}/1000`, 'choose another database'],
      [`redis+cluster://:${ENCODED}@${here}`, 'write redis://… for a single server'],
    ] as const;
    test.each(permanent)('refuses %s, whether it is required or not', async (url, remedy) => {
      await expectRefusal(url, remedy);
      await expectRefusal(url, remedy, { on_unreachable: 'warn' });
    });

    test.each(['redis', 'redis+cluster', 'redis+sentinel'])(
      'that is not there is an error: %s',
      async (scheme) => {
        const name = scheme === 'redis+sentinel' ? '/main' : '';
        await expectRefusal(`${scheme}://:hunter2@127.0.0.1:${await freePort()}${name}`, UNREACHABLE);
      },
    );

    test('with a host that is unknown is an error', async () => {
      await expectRefusal('redis://:hunter2@redis.invalid', 'check the host in the URL');
    });

    test('that does not speak TLS is an error', async () => {
      await expectRefusal(`rediss://:hunter2@${here}`, UNREACHABLE);
    });

    test('that is a replica is an error', async () => {
      const master = await RedisServer.start({ binary: path });
      const replica = await RedisServer.start({ binary: path });
      await follow(replica, master);
      await expectRefusal(replica.url, 'configure the master');
      await Promise.all([replica.stop(), master.stop()]);
    });

    test('whose user may not write is refused', async () => {
      const limited = await RedisServer.start({
        binary: path,
        configuration: ['user me on >hunter2 ~* +@read +@connection +info'],
      });
      await expectRefusal(`redis://me:hunter2@127.0.0.1:${limited.port}`, 'grant this user the commands');
      await limited.stop();
    });

    test('needs no more rights than docs/stores.md asks for', async () => {
      const documented = /^ACL SETUSER me (.+)$/m.exec(readFileSync(DOCUMENT, 'utf8'))?.[1];
      const limited = await RedisServer.start({ binary: path, configuration: [`user me ${documented}`] });
      const store = await opening(`redis://me:PASSWORD@127.0.0.1:${limited.port}`).store;
      await expectWorking(store);
      const lease = await store.acquire(newRunId(), OWNER);
      await store.release(lease);
      expect(await store.orphans(10)).toHaveLength(1);
      await store.finish(await store.acquire(lease.run, OWNER, 2), { status: 'failed', at_ms: 1 });
      expect(await store.read(lease.run, OWNER, 0)).toMatchObject({ status: 'failed' });
      expect(await store.read(lease.run, OWNER, 1)).toMatchObject({ status: 'failed' });
      expect(await store.orphans(10)).toEqual([]);
      const note = { kind: 'thread', name: 'x' } as const;
      expect(await store.notes.claim(OWNER, note, 'y', 1000)).toBe('y');
      await store.notes.put(OWNER, note, 'z', 1000);
      expect(await store.notes.get(OWNER, note)).toBe('z');
      expect(await store.notes.consume(OWNER, note)).toBe('z');
      await store.close();
      await limited.stop();
    });

    test('that is part of a cluster says so', async () => {
      const cluster = await RedisCluster.start(path);
      const url = cluster.nodes[0]?.url ?? '';
      // A store has a random id, and by chance all its keys can lie on that one server.
      for (let i = 0; i < 20; i++) await expectRefusal(url, 'write redis+cluster://…');
      await expectRefusal(`${url}/1`, 'choose another database');
      await expectOpened(cluster.url);
      await cluster.stop();
    });

    test('is found by its sentinels', async () => {
      const sentinel = await RedisSentinel.start(path);
      await expectOpened(sentinel.url);
      await expectOpened(`${sentinel.url}/5`);
      await expectRefusal(sentinel.url.replace('/main', '/other'), UNREACHABLE);
      await sentinel.stop();
    });

    test('need not be there when it is not required, and is used as soon as it is', async () => {
      const late = await RedisServer.start({ binary: path });
      await late.kill();
      const { store: pending, outages, recovered } = opening(late.url, { on_unreachable: 'warn' });
      const store = await pending;
      expect(outages).toEqual([expect.stringContaining(`(ECONNREFUSED 127.0.0.1:${late.port})`)]);
      await expect(store.check()).rejects.toThrow('ECONNREFUSED');
      await expect(store.acquire(newRunId(), OWNER)).rejects.toThrow('ECONNREFUSED');
      await expect(store.notes.get(OWNER, { kind: 'thread', name: 'x' })).rejects.toThrow('ECONNREFUSED');
      await late.start();
      await recovered;
      await expectWorking(store);
      expect(outages).toHaveLength(1);
      await store.close();
      await late.stop();
    });

    test('that never came does not keep the store from closing', async () => {
      const url = `redis://127.0.0.1:${await freePort()}`;
      const store = await opening(url, { on_unreachable: 'warn' }).store;
      await store.close();
      await store.close();
    });
  });
}
