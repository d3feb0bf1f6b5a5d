import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { runCli, startReplicaProcess, temporaryDirectory } from '../cli-process.ts';
import { needs } from '../needs.ts';
import { certificate } from '../provider/certificate.ts';
import { redisBinary } from './binaries.ts';
import { freePort } from './free-port.ts';
import { RedisServer } from './redis-server.ts';

vi.setConfig({ testTimeout: 60_000 });

const UPSTREAM = ['--upstream', 'http://127.0.0.1:9/v1'];
const SECRET = { HOLDFAST_SECRET: 's'.repeat(32) };
const ENVIRONMENT = { ...SECRET, HOLDFAST_LIMITS_DRAIN_DELAY_MS: '0' };
const PASSWORD = 'hunter2';
/** The limit for a replica to exit while its store doesn't answer. */
const ENDS_MS = 10_000;

const binary = await redisBinary();

if ('missing' in binary) {
  test('a replica with Redis', needs(binary), () => {});
} else {
  const server = await RedisServer.start({
    binary: binary.path,
    configuration: ['appendonly yes', `user default on >${PASSWORD} ~* +@all`],
  });
  afterAll(() => server.stop());
  const url = server.url.replace('//', `//:${PASSWORD}@`);
  const serve = (...words: string[]) =>
    startReplicaProcess([...UPSTREAM, '--store', url, ...words], ENVIRONMENT);

  describe('a replica with Redis', () => {
    test('does not start without the secret that all replicas need', async () => {
      const { status, stderr } = await runCli(['serve', ...UPSTREAM, '--store', url]);
      expect(status).toBe(2);
      expect(stderr).toBe(
        'holdfast: secret: replicas that share a Redis need the same one; configure `secret` or set HOLDFAST_SECRET\n',
      );
    });

    test('does not start with a wrong password, and does not show it', async () => {
      const wrong = server.url.replace('//', '//:correct-horse@');
      const { status, stdout, stderr } = await runCli(['serve', ...UPSTREAM, '--store', wrong], SECRET);
      expect(status).toBe(2);
      expect(stderr).toMatch(
        /^holdfast: checkpoint\.store: redis:\/\/127\.0\.0\.1:\d+ cannot be used \(WRONGPASS/,
      );
      expect(stdout + stderr).not.toContain('correct-horse');
    });

    test('is not ready while Redis is away, says so, and shows no password', async () => {
      const { child, exit, lines, admin } = await serve();
      const readiness = async () => {
        const response = await fetch(`${admin}/readyz`);
        return { status: response.status, body: await response.json() };
      };
      expect(await readiness()).toEqual({ status: 200, body: { status: 'ready' } });
      await server.kill();
      await vi.waitFor(
        async () =>
          expect(await readiness()).toMatchObject({
            status: 503,
            body: { failing: { store: `${server.url} failed: ECONNREFUSED 127.0.0.1:${server.port}` } },
          }),
        { timeout: 20_000, interval: 20 },
      );
      await server.start();
      await vi.waitFor(async () => expect(await readiness()).toMatchObject({ status: 200 }), {
        timeout: 20_000,
        interval: 20,
      });
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
      const log = lines.map((line) => JSON.parse(line));
      expect(log.map(({ msg }) => msg)).toEqual([
        'listening',
        'the store fails: runs continue without checkpoints',
        'the store works again',
        'draining',
        'stopped',
      ]);
      expect(log[1]).toMatchObject({ level: 'warn', err: { type: 'RedisFailureError' } });
      expect(log[2].outage_ms).toBeGreaterThan(0);
      expect(lines.join('\n')).not.toContain(PASSWORD);
    });

    test('says at its start how Redis is set up to lose runs', async () => {
      const careless = await RedisServer.start({
        binary: binary.path,
        configuration: ['appendonly yes', 'maxmemory-policy allkeys-lru'],
      });
      onTestFinished(() => careless.stop());
      const { child, exit, lines } = await startReplicaProcess(
        [...UPSTREAM, '--store', careless.url],
        ENVIRONMENT,
      );
      const doubt = 'checkpoint.store: Redis may lose runs: maxmemory-policy is allkeys-lru';
      await vi.waitFor(() => expect(lines.join('\n')).toContain(doubt), { timeout: 5000 });
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
    });

    test('speaks TLS to a Redis whose certificate authority is configured, and to no other', async () => {
      const { key, cert } = await certificate();
      const directory = temporaryDirectory();
      const [key_file, authority] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
      writeFileSync(key_file, key);
      writeFileSync(authority, cert);
      const port = await freePort();
      const secure = await RedisServer.start({
        binary: binary.path,
        configuration: [
          `tls-port ${port}`,
          `tls-cert-file ${authority}`,
          `tls-key-file ${key_file}`,
          `tls-ca-cert-file ${authority}`,
          'tls-auth-clients no',
        ],
      });
      onTestFinished(() => secure.stop());
      const words = [...UPSTREAM, '--store', `rediss://localhost:${port}`];
      const refused = await runCli(['serve', ...words], SECRET);
      expect(refused.status).toBe(2);
      expect(refused.stderr).toContain(
        'have Node.js trust its certificate authority with NODE_EXTRA_CA_CERTS=FILE',
      );
      const { child, exit, admin } = await startReplicaProcess(words, {
        ...ENVIRONMENT,
        NODE_EXTRA_CA_CERTS: authority,
      });
      expect((await fetch(`${admin}/readyz`)).status).toBe(200);
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
    });

    test('ends when Redis hangs', async () => {
      const { child, exit } = await serve();
      server.pause();
      const started_ms = performance.now();
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
      expect(performance.now() - started_ms).toBeLessThan(ENDS_MS);
      server.resume();
    });
  });
}
