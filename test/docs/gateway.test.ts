import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { temporaryDirectory } from '../cli-process.ts';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { needs } from '../needs.ts';
import { startProvider } from '../provider/provider.ts';
import { redisBinary } from '../redis/binaries.ts';
import { freePort } from '../redis/free-port.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { asWhole, balancer } from './balancers.ts';
import { snippet } from './pages.ts';

const PAGE = 'docs/gateway.md';
const REQUESTS = 20;
/** Longer than a busy machine needs to pass three events on. */
const SILENCE_MS = 3000;
const TEXT = 'A holdfast is the organ with which kelp grips the rock.';

const redis = await redisBinary();
const [haproxy, nginx] = await Promise.all([balancer('haproxy'), balancer('nginx')]);

/** Starts the page's replicas, on free ports. */
async function startReplicas(count: number) {
  if ('missing' in redis) throw new Error(redis.missing);
  const server = await RedisServer.start({ binary: redis.path });
  const provider = await startProvider();
  onTestFinished(async () => {
    await provider.close();
    await server.stop();
  });
  const page = snippet(PAGE, 'yaml', 'listen:').replace(
    'redis://redis:6379',
    `redis://127.0.0.1:${server.port}`,
  );
  const { upstreams: _, ...tree } = parse(page.replace(/\$\{HOLDFAST_SECRET\}/, 'a secret for tests only'));
  const start = () =>
    HoldfastProcess.start({
      ...tree,
      listen: { host: '127.0.0.1', port: 0, admin_port: 0 },
      upstreams: { openai: { base_url: provider.url } },
    });
  const replicas = await Promise.all(Array.from({ length: count }, start));
  onTestFinished(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
  });
  return { provider, replicas };
}

const portOf = (url: string): string => new URL(url).port;

const BALANCERS = {
  haproxy: {
    program: haproxy,
    words: (directory: string) => ['-db', '-f', join(directory, 'configuration')],
    configuration: (port: number, replicas: readonly HoldfastProcess[]) =>
      snippet(PAGE, 'haproxy')
        .replace('bind :8080', `bind 127.0.0.1:${port}`)
        .replace(/holdfast-(\d):8080/g, (_, number) => {
          const { url, adminUrl } = replicas[number - 1] as HoldfastProcess;
          return `127.0.0.1:${portOf(url)} port ${portOf(adminUrl)}`;
        }),
  },
  nginx: {
    program: nginx,
    words: (directory: string) => [
      '-e',
      join(directory, 'error.log'),
      '-p',
      directory,
      '-c',
      'configuration',
    ],
    configuration: (port: number, replicas: readonly HoldfastProcess[], directory: string) =>
      `daemon off;\n${asWhole(
        snippet(PAGE, 'nginx')
          .replace('listen 8080', `listen 127.0.0.1:${port}`)
          .replace(
            /holdfast-(\d):8080/g,
            (_, number) => `127.0.0.1:${portOf(replicas[number - 1]?.url ?? '')}`,
          ),
        directory,
      )}`,
  },
};

async function start(name: keyof typeof BALANCERS, replicas: readonly HoldfastProcess[]): Promise<string> {
  const { program, words, configuration } = BALANCERS[name];
  if ('missing' in program) throw new Error(program.missing);
  const directory = join(temporaryDirectory(), name);
  mkdirSync(directory);
  const port = await freePort();
  writeFileSync(join(directory, 'configuration'), configuration(port, replicas, directory));
  const child = spawn(program.path, words(directory), { stdio: ['ignore', 'inherit', 'inherit'] });
  onTestFinished(() => stop(child));
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`${name} does not start`);
    await setImmediate();
  }
  return `http://127.0.0.1:${port}/v1/chat/completions`;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  // Both programs take SIGTERM as an immediate stop, for their workers as well.
  child.kill('SIGTERM');
  await exited;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

const ask = (url: string, question: string): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'any', stream: true, messages: [{ role: 'user', content: question }] }),
  });

function textOf(events: string): string {
  const lines = events.split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? '').join('');
}

describe.each(['haproxy', 'nginx'] as const)('%s, as the page has it', (name) => {
  const { program } = BALANCERS[name];

  test('passes events on as they come', { timeout: 60_000, ...needs(program, redis) }, async () => {
    const { provider, replicas } = await startReplicas(2);
    const url = await start(name, replicas);
    const silence = { kind: 'silence', at: { event: 4 }, for_ms: SILENCE_MS } as const;
    provider.respond(() => ({ parts: [{ text: TEXT }], faults: [silence] }));
    const response = await ask(url, 'What is kelp?');
    const decoder = new TextDecoder();
    let read = '';
    for await (const bytes of response.body ?? []) {
      if (read === '') expect(decoder.decode(bytes)).not.toContain('rock');
      read += decoder.decode(bytes);
    }
    expect(textOf(read)).toBe(TEXT);
  });

  test('refuses no client while a replica stops', { timeout: 60_000, ...needs(program, redis) }, async () => {
    const { provider, replicas } = await startReplicas(2);
    const url = await start(name, replicas);
    provider.respond(() => ({ parts: [{ text: TEXT }] }));
    // The gateway refuses requests until its health checks have found both replicas.
    while ((await ask(url, 'Are you there?')).status !== 200) await setImmediate();
    const [first, second] = replicas;
    const stopped = first?.stop();
    let hasStopped = false;
    void stopped?.then(() => {
      hasStopped = true;
    });
    const served = second?.log.length ?? 0;
    for (let count = 0; count < REQUESTS || !hasStopped; count++) {
      const response = await ask(url, `Question ${count}`);
      expect(response.status).toBe(200);
      expect(textOf(await response.text())).toBe(TEXT);
    }
    expect(await stopped).toEqual({ code: 0, signal: null });
    expect(second?.log.length).toBeGreaterThan(served);
  });
});
