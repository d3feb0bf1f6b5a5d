import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { completeConfiguration } from '../../src/config/load.ts';
import { examineMachine } from '../../src/doctor/machine.ts';
import { runCli, startReplicaProcess, temporaryDirectory } from '../cli-process.ts';
import { startProvider } from '../http-peer.ts';
import { NO_UPSTREAM_URL } from '../replica.ts';
import { diagnose } from './doctor-process.ts';

/** Each test starts processes, possibly on a busy machine. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

/** These tests don't need an upstream, so nothing listens at this address. */
const TREE = { upstreams: { main: { base_url: NO_UPSTREAM_URL } } };

const portOf = (url: string): number => Number(new URL(url).port);

it('wants the Node that the package wants', () => {
  const configuration = completeConfiguration(structuredClone(TREE));
  const oldest = manifest.engines.node.replace('>=', '');
  const [major = 0, minor = 0] = oldest.split('.').map(Number);
  const statusOn = (version: string) =>
    examineMachine(configuration, version).find(({ name }) => name === 'node')?.status;
  expect(statusOn(`${oldest}.0`)).toBe('ok');
  expect(statusOn(`${major + 1}.0.0`)).toBe('ok');
  expect(statusOn(`${major}.${minor - 1}.0`)).toBe('fail');
  expect(statusOn(`${major - 1}.99.0`)).toBe('fail');
});

it('compares the limit on open files with the connections that are allowed', async () => {
  const few = await diagnose({ ...TREE, limits: { connections: 10 } });
  expect(few.of('machine').descriptors).toMatchObject({ status: 'ok' });
  const many = await diagnose({ ...TREE, limits: { connections: 1_000_000 } });
  expect(many.of('machine').descriptors).toMatchObject({
    status: 'warn',
    figures: { connections: 1_000_000 },
    remedy: expect.stringContaining('limits.connections'),
  });
});

it('ports that are free, and a store that forgets', async () => {
  const { of } = await diagnose(TREE);
  expect(of('ports')).toMatchObject({
    'api port': { status: 'ok' },
    'admin port': { status: 'ok' },
    'admin exposure': { status: 'ok' },
  });
  expect(of('store').durability).toMatchObject({ status: 'warn' });
});

it('ports that are in use, and an admin port that is open to all', async () => {
  const port = portOf(await startProvider((_request, response) => void response.end('hello')));
  const listen = { port, admin_port: 0, admin_host: '0.0.0.0' };
  const { status, of } = await diagnose({ ...TREE, listen });
  expect(of('ports')['api port']).toMatchObject({
    status: 'fail',
    seen: `can't listen on 127.0.0.1:${port} (EADDRINUSE)`,
    remedy: expect.stringContaining('--port'),
  });
  expect(of('ports')['admin exposure']).toMatchObject({ status: 'warn' });
  expect(status).toBe(1);
});

it('ports that a replica of ours has already', async () => {
  const { api, admin } = await startReplicaProcess(['--upstream', NO_UPSTREAM_URL]);
  const { of } = await diagnose({ ...TREE, listen: { port: portOf(api), admin_port: portOf(admin) } });
  expect(of('ports')).toMatchObject({
    'api port': { status: 'ok', seen: expect.stringContaining('already') },
    'admin port': { status: 'ok', seen: expect.stringContaining('already') },
  });
});

it('a directory that can be made, and is not', async () => {
  const directory = join(temporaryDirectory(), 'some/where');
  const { of } = await diagnose({ ...TREE, checkpoint: { store: `file:${directory}` } });
  expect(of('store')).toMatchObject({
    directory: { status: 'ok' },
    fsync: { figures: { p50_ms: expect.any(Number), max_ms: expect.any(Number) } },
    'free space': { figures: { free_bytes: expect.any(Number) } },
    secret: { status: 'ok' },
  });
  expect(existsSync(directory)).toBe(false);
});

it('a directory that is none, and a secret that others can read', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'secret');
  writeFileSync(file, 'x'.repeat(43));
  chmodSync(file, 0o644);
  const none = await diagnose({ ...TREE, checkpoint: { store: `file:${file}/data` } });
  expect(none.of('store').directory).toMatchObject({
    status: 'fail',
    seen: expect.stringContaining('ENOTDIR'),
  });
  expect(none.status).toBe(1);
  const open = await diagnose({ ...TREE, checkpoint: { store: `file:${directory}` } });
  expect(open.of('store').secret).toMatchObject({ status: 'warn', remedy: `chmod 600 ${file}` });
});

it('replicas with the same secret show the same name, which does not reveal it', async () => {
  const [one, same, other] = await Promise.all(
    ['the secret of all replicas', 'the secret of all replicas', 'another secret altogether'].map((secret) =>
      diagnose({ ...TREE, secret }),
    ),
  );
  const name = one?.of('store').secret?.figures?.deployment;
  expect(name).toMatch(/^holdfast-/);
  expect(same?.of('store').secret?.figures?.deployment).toBe(name);
  expect(other?.of('store').secret?.figures?.deployment).not.toBe(name);
  expect(one?.output).not.toContain('the secret of');
});

it('for people: what was seen, what to do, and a line that counts', async () => {
  const words = ['--upstream', NO_UPSTREAM_URL, '--port', '0', '--admin-port', '0', '--store', 'memory'];
  const { status, stdout, stderr } = await runCli(['doctor', ...words]);
  expect(stderr).toBe('');
  expect(stdout).toContain(
    "\nupstream default\n  fail    tcp             can't connect to port 9 of 127.0.0.1",
  );
  expect(stdout).toMatch(/\n {26}→ check the host and port in base_url/);
  expect(stdout).toMatch(/\n\d+ ok, \d+ warnings, 1 failed, \d+ skipped\n$/);
  expect(stdout).not.toContain('\u001b');
  expect(status).toBe(1);
});

it('a configuration that serve would not start with', async () => {
  const words = ['doctor', '--upstream', 'ftp://llm.example.com'];
  expect(await runCli(words)).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringContaining('must be an http: or https: URL'),
  });
  const { status, stdout } = await runCli([...words, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, problems: [{ source: '--upstream' }] });
  expect(status).toBe(2);
});
