import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { freePort } from '../redis/free-port.ts';
import { follow } from '../redis/redis-sentinel.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { NO_UPSTREAM_URL } from '../replica.ts';
import { type Diagnosis, diagnose } from './doctor-process.ts';

/** Each test starts processes, possibly on a busy machine. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

const SECRET = 'the secret of all replicas';
const PASSWORD = 'p@ss:word-that-nobody-may-see';
const binary = await redisBinary();

const doctorOf = (store: string, more: Record<string, unknown> = {}, environment = {}): Promise<Diagnosis> =>
  diagnose(
    {
      upstreams: { main: { base_url: NO_UPSTREAM_URL } },
      secret: SECRET,
      checkpoint: { store },
      ...more,
    },
    [],
    environment,
  );

describe('a Redis store', needs(binary), () => {
  let server: RedisServer;

  beforeAll(async () => {
    if ('missing' in binary) return;
    server = await RedisServer.start({ binary: binary.path, configuration: ['appendonly yes'] });
  });
  afterAll(() => server?.stop());

  it('one where all is well, which is left as it was', async () => {
    const { of } = await doctorOf(server.url);
    const { lease, latency, clock, ...others } = of('store');
    expect(Object.keys(others)).toEqual([
      'reachable',
      'version',
      'eviction',
      'persistence',
      'replication',
      'secret',
    ]);
    for (const each of Object.values(others)) expect(each).toMatchObject({ status: 'ok' });
    expect(latency?.figures).toMatchObject({ p50_ms: expect.any(Number) });
    expect(clock).toMatchObject({ status: 'ok', figures: { skew_ms: expect.any(Number) } });
    expect(lease).toMatchObject({ status: 'ok', figures: { probe_ms: expect.any(Number) } });
    const lives_s = await Promise.all((await server.admin.keys('*')).map((key) => server.admin.ttl(key)));
    for (const life_s of lives_s) expect(life_s).toBeGreaterThan(0);
    for (const life_s of lives_s) expect(life_s).toBeLessThanOrEqual(60);
  });

  it('replicas without a common secret', async () => {
    const { status, of } = await doctorOf(server.url, { secret: undefined });
    expect(of('store').secret).toMatchObject({
      status: 'fail',
      remedy: expect.stringContaining('HOLDFAST_SECRET'),
    });
    expect(status).toBe(1);
  });

  it('one that evicts, and keeps nothing on a disk', async () => {
    if ('missing' in binary) return;
    const forgetful = await RedisServer.start({
      binary: binary.path,
      configuration: ['maxmemory 100mb', 'maxmemory-policy allkeys-lru'],
    });
    onTestFinished(() => forgetful.stop());
    const { of } = await doctorOf(forgetful.url);
    expect(of('store').eviction).toMatchObject({
      status: 'warn',
      seen: expect.stringContaining('allkeys-lru'),
      figures: { policy: 'allkeys-lru', limit_bytes: 104_857_600 },
      remedy: expect.stringContaining('noeviction'),
    });
    expect(of('store').persistence).toMatchObject({ status: 'warn' });
    expect(of('store').lease).toMatchObject({ status: 'ok' });
  });

  it('one whose failover would lose something, and one with fewer replicas than are waited for', async () => {
    if ('missing' in binary) return;
    const { path } = binary;
    const [master, replica] = [
      await RedisServer.start({ binary: path }),
      await RedisServer.start({ binary: path }),
    ];
    onTestFinished(async () => {
      for (const each of [replica, master]) await each.stop();
    });
    await follow(replica, master);
    expect((await doctorOf(master.url)).of('store').replication).toMatchObject({
      status: 'warn',
      figures: { replicas: 1, wait_replicas: 0 },
      remedy: expect.stringContaining('min-replicas-to-write'),
    });
    await master.admin.config('SET', 'min-replicas-to-write', '1');
    const waiting = (wait_replicas: number, wait_ms: number) =>
      doctorOf(master.url, {
        checkpoint: { store: master.url, replication: { wait_replicas, wait_ms } },
      });
    // On two cores shared with other tests, a replica may need longer than the default to acknowledge.
    expect((await waiting(1, 5000)).of('store')).toMatchObject({
      replication: { status: 'ok' },
      lease: { status: 'ok' },
    });
    const { status, of } = await waiting(2, 100);
    expect(of('store').replication).toMatchObject({
      status: 'fail',
      seen: expect.stringContaining('has 1 replicas, but checkpoint.replication waits for 2'),
    });
    expect(of('store').lease).toMatchObject({ status: 'fail' });
    expect(status).toBe(1);
  });

  it('one that is too old', async () => {
    const { status, of } = await doctorOf(`redis://127.0.0.1:${await agedTo(server.port)}`);
    expect(of('store').version).toMatchObject({
      status: 'fail',
      figures: { redis_version: expect.stringMatching(/^6\./) },
      remedy: expect.stringContaining('Redis 7'),
    });
    expect(status).toBe(1);
  });

  it('one that is not there', async () => {
    const { status, of } = await doctorOf(
      `redis://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${await freePort()}`,
    );
    expect(of('store').reachable).toMatchObject({
      status: 'fail',
      seen: expect.stringContaining('ECONNREFUSED'),
      remedy: expect.stringContaining('start it'),
    });
    expect(of('store').lease).toBeUndefined();
    expect(status).toBe(1);
  });

  it('one that hangs does not hold the doctor up', async () => {
    if ('missing' in binary) return;
    const frozen = await RedisServer.start({ binary: binary.path });
    onTestFinished(() => frozen.stop());
    frozen.pause();
    const { status, of } = await doctorOf(frozen.url);
    expect(of('store').reachable).toMatchObject({
      status: 'fail',
      seen: expect.stringContaining('cannot be used'),
    });
    expect(status).toBe(1);
  });

  it('a user with the rights that the documentation has, and one with fewer', async () => {
    const [, , , ...granted] = documentedRights().split(' ');
    const rights = granted.map((right) => right.replace('PASSWORD', PASSWORD));
    await server.admin.call('ACL', 'SETUSER', 'enough', ...rights);
    await server.admin.call('ACL', 'SETUSER', 'fewer', ...rights, '-@write');
    const url = (user: string, password = PASSWORD) =>
      `redis://${user}:${encodeURIComponent(password)}@127.0.0.1:${server.port}`;

    const enough = await doctorOf(url('enough'));
    expect(Object.values(enough.of('store')).filter(({ status }) => status === 'fail')).toEqual([]);
    expect(enough.of('store').lease).toMatchObject({ status: 'ok' });

    const fewer = await doctorOf(url('fewer'));
    expect(fewer.of('store').lease).toMatchObject({
      status: 'fail',
      seen: expect.stringContaining('NOPERM'),
      remedy: expect.stringContaining('docs/stores.md'),
    });
    expect(fewer.status).toBe(1);

    const wrong = await doctorOf(url('enough', `${PASSWORD}!`));
    expect(wrong.of('store').reachable).toMatchObject({
      status: 'fail',
      seen: expect.stringContaining('WRONGPASS'),
      remedy: expect.stringContaining('password'),
    });
    for (const { output } of [enough, fewer, wrong]) expect(output).not.toContain('that-nobody-may-see');
  });

  it('a clock of ours that is wrong', async () => {
    const { of } = await doctorOf(server.url, {}, { NODE_OPTIONS: `--import=${CLOCK_AHEAD}` });
    expect(of('store').clock).toMatchObject({ status: 'warn', remedy: expect.stringContaining('NTP') });
    expect(Number(of('store').clock?.figures?.skew_ms)).toBeLessThan(-50_000);
    expect(of('store').lease).toMatchObject({ status: 'ok' });
  });
});

/** The documented `ACL SETUSER` line. */
function documentedRights(): string {
  const page = readFileSync(new URL('../../docs/stores.md', import.meta.url), 'utf8');
  return /^ACL SETUSER .*$/m.exec(page)?.[0] ?? '';
}

/** A module that sets the clock of its process one minute ahead. */
const CLOCK_AHEAD = `data:text/javascript,${encodeURIComponent(
  'const now = Date.now; Date.now = () => now() + 60000;',
)}`;

/** Starts a relay to the server that makes it report version 6; returns the relay's port. */
async function agedTo(port: number): Promise<number> {
  const wire = createServer((client) => {
    const redis = connect(port, '127.0.0.1');
    client.on('data', (bytes) => redis.write(bytes));
    redis.on('data', (bytes: Buffer) =>
      client.write(
        Buffer.from(bytes.toString('latin1').replace(/redis_version:\d/, 'redis_version:6'), 'latin1'),
      ),
    );
    for (const [one, other] of [
      [client, redis],
      [redis, client],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy());
  });
  wire.listen(0, '127.0.0.1');
  await once(wire, 'listening');
  onTestFinished(() => void wire.close());
  return (wire.address() as AddressInfo).port;
}
