import { lookup } from 'node:dns/promises';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FeedSnapshot, FeedUpdate } from '../../src/status/snapshot.ts';
import { runCli, startReplicaProcess, temporaryDirectory } from '../cli-process.ts';
import { startProvider } from '../provider/provider.ts';
import { openFeed } from '../status/feed-reader.ts';

// Run the compiled program: each process takes seconds to start from the sources.
process.env.HOLDFAST_CLI ??= fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

const TEST_MAX_MS = 180_000;
const POLL_MS = 20;
const UPSTREAM = ['--upstream', 'http://127.0.0.1:9/v1'];
const TEXT = Array.from({ length: 200 }, (_, index) => `w${index}`).join(' ');

/** Polls until the condition holds; the test's timeout limits the wait. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pause(POLL_MS);
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

interface Started {
  readonly lines: readonly string[];
}

interface Line {
  readonly msg: string;
  readonly pid?: number;
  readonly worker?: number;
}

const linesOf = ({ lines }: Started, msg: string): Line[] =>
  lines.map((line) => JSON.parse(line) as Line).filter((line) => line.msg === msg);

/** The process ids of all workers that have ever served, in order. */
const pidsOf = (started: Started): number[] => linesOf(started, 'a worker serves').map(({ pid }) => pid ?? 0);

const readyz = async (admin: string) => {
  const response = await fetch(`${admin}/readyz`);
  return { status: response.status, body: await response.json() };
};

const post = (api: string, signal?: AbortSignal) =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer key' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
    ...(signal && { signal }),
  });

/** A provider whose answers take two seconds, or longer with a larger delay between their events. */
async function slowProvider(delay_ms = 8): Promise<string> {
  const provider = await startProvider({ protocol: 'http1' });
  onTestFinished(() => provider.close());
  provider.respond(() => ({ parts: [{ text: TEXT }], delay_ms }));
  return provider.url;
}

describe('serve --workers', () => {
  test(
    'shares a port that was free, on all addresses of localhost, and the work',
    async () => {
      const started = await startReplicaProcess([...UPSTREAM, '--workers', '2', '--host', 'localhost']);
      expect(pidsOf(started)).toHaveLength(2);
      const { port } = new URL(started.api);
      for (const { address, family } of await lookup('localhost', { all: true })) {
        const host = family === 6 ? `[${address}]` : address;
        expect((await fetch(`http://${host}:${port}/v1/models`)).status).toBe(502);
      }
      expect(await readyz(started.admin)).toEqual({ status: 200, body: { status: 'ready' } });
      const status = await (await fetch(`${started.admin}/status`)).json();
      expect(status).toMatchObject({
        status: 'serving',
        fleet: [
          { name: expect.stringMatching(`:${port}/1$`), self: true },
          { name: expect.stringMatching(`:${port}/2$`), self: true },
        ],
      });
    },
    TEST_MAX_MS,
  );

  test(
    'drains all workers with the first signal, although the terminal sends it to them as well',
    async () => {
      const upstream = await slowProvider();
      const started = await startReplicaProcess(['--upstream', upstream, '--workers', '2']);
      const pids = pidsOf(started);
      const answers = await Promise.all([post(started.api), post(started.api)]);
      started.child.kill('SIGINT');
      for (const pid of pids) process.kill(pid, 'SIGINT');
      await until(() => linesOf(started, 'draining').length === 1);
      expect((await readyz(started.admin)).status).toBe(503);
      for (const answer of answers) expect(await answer.text()).toContain('data: [DONE]');
      expect((await started.exit)[0]).toBe(0);
      expect(pids.filter(isAlive)).toEqual([]);
      expect(linesOf(started, 'stopped')).toHaveLength(1);
    },
    TEST_MAX_MS,
  );

  test(
    'ends at once with the second signal',
    async () => {
      const upstream = await slowProvider();
      const started = await startReplicaProcess(['--upstream', upstream, '--workers', '2']);
      const pids = pidsOf(started);
      const answer = await post(started.api);
      started.child.kill('SIGTERM');
      await until(() => linesOf(started, 'draining').length === 1);
      started.child.kill('SIGTERM');
      expect((await started.exit)[0]).toBe(1);
      await until(() => !pids.some(isAlive));
      await expect(answer.text()).rejects.toThrow();
    },
    TEST_MAX_MS,
  );

  test(
    'leaves no workers behind when its supervisor is killed; they finish their answers',
    async () => {
      const upstream = await slowProvider();
      const started = await startReplicaProcess(['--upstream', upstream, '--workers', '2']);
      const pids = pidsOf(started);
      const answer = await post(started.api);
      started.child.kill('SIGKILL');
      await started.exit;
      await expect(post(started.api)).rejects.toThrow();
      expect(await answer.text()).toContain('data: [DONE]');
      await until(() => !pids.some(isAlive));
    },
    TEST_MAX_MS,
  );

  test(
    'replaces workers that are killed, and what is counted does not decrease',
    async () => {
      const upstream = await slowProvider();
      const started = await startReplicaProcess(['--upstream', upstream, '--workers', '2']);
      await Promise.all([1, 2, 3, 4].map(async () => (await post(started.api)).text()));
      const counted = async (): Promise<Map<string, number>> => {
        const text = await (await fetch(`${started.admin}/metrics`)).text();
        const kinds = new Map(
          Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name = '', kind = '']) => [name, kind]),
        );
        const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
        return new Map(
          samples
            .filter((line) => {
              const [name = ''] = line.split(/[{ ]/);
              return /^(counter|histogram)$/.test(
                kinds.get(name) ?? kinds.get(name.replace(/_(bucket|sum|count)$/, '')) ?? '',
              );
            })
            .map((line) => [
              line.slice(0, line.lastIndexOf(' ')),
              Number(line.slice(line.lastIndexOf(' ') + 1)),
            ]),
        );
      };
      const runs = 'holdfast_runs_total{wire="chat_completions",outcome="complete"}';
      let before = await counted();
      while (before.get(runs) !== 4) before = await counted();
      const watch = async (isOver: () => boolean) => {
        do {
          const now = await counted();
          for (const [series, value] of before)
            expect(now.get(series) ?? 0, series).toBeGreaterThanOrEqual(value);
          before = now;
        } while (!isOver());
      };
      for (const pid of pidsOf(started)) {
        const served = pidsOf(started).length;
        process.kill(pid, 'SIGKILL');
        await watch(() => pidsOf(started).length > served);
      }
      expect(before.get(runs)).toBe(4);
      await (await post(started.api)).text();
      await watch(() => before.get(runs) === 5);
      expect((await readyz(started.admin)).status).toBe(200);
      const replaced = linesOf(started, 'a worker has ended: it is replaced').map(({ worker }) => worker);
      expect(new Set(replaced)).toEqual(new Set([1, 2]));
      started.child.kill('SIGTERM');
      expect((await started.exit)[0]).toBe(0);
    },
    TEST_MAX_MS,
  );

  test(
    'reloads all workers or none, and new workers have what the others have',
    async () => {
      const file = join(temporaryDirectory(), 'holdfast.yaml');
      const key = join(temporaryDirectory(), 'key');
      const write = (more: object) =>
        writeFileSync(
          file,
          JSON.stringify({
            upstreams: { default: { base_url: 'http://127.0.0.1:9/v1' } },
            workers: 2,
            ...more,
          }),
        );
      writeFileSync(key, 'a-key');
      write({});
      const started = await startReplicaProcess(['--config', file]);
      const reload = async () => {
        const response = await fetch(`${started.admin}/reload`, { method: 'POST' });
        return { status: response.status, report: (await response.json()) as Record<string, unknown> };
      };
      write({ limits: { run_bytes: 1 } });
      expect(await reload()).toMatchObject({ status: 422, report: { outcome: 'refused' } });
      write({
        upstreams: { default: { base_url: 'http://127.0.0.1:9/v1', api_key_file: `${key}-missing` } },
      });
      expect(await reload()).toMatchObject({ report: { outcome: 'refused' } });
      write({ recovery: { max_attempts: 7 }, workers: 3 });
      expect(await reload()).toMatchObject({
        status: 200,
        report: { outcome: 'applied', changed: ['recovery.max_attempts'], restart_required: ['workers'] },
      });
      const [first = 0] = pidsOf(started);
      process.kill(first, 'SIGKILL');
      await until(() => pidsOf(started).length === 3);
      expect(await reload()).toMatchObject({
        report: { outcome: 'unchanged', restart_required: ['workers'] },
      });
      const { body } = await fetch(`${started.admin}/metrics`).then(async (response) => ({
        body: await response.text(),
      }));
      expect(body).toContain('holdfast_config_reloads_total{outcome="applied"} 1');
      expect(body).toContain('holdfast_config_reloads_total{outcome="unchanged"}');
    },
    TEST_MAX_MS,
  );

  test(
    'replaces a worker that cannot apply what another one has applied',
    async () => {
      const directory = temporaryDirectory();
      const [file, calls, failing] = ['holdfast.yaml', 'calls', 'failing'].map((name) =>
        join(directory, name),
      );
      /** Prints a key, but fails on the call whose number is in the file. */
      const command = `
        const { appendFileSync, readFileSync } = require('node:fs');
        appendFileSync('${calls}', '.');
        if (readFileSync('${calls}').length === Number(readFileSync('${failing}', 'utf8'))) process.exit(1);
        console.log('a-key');`;
      const write = (more: object) =>
        writeFileSync(
          file as string,
          JSON.stringify({
            upstreams: {
              default: {
                base_url: 'http://127.0.0.1:9/v1',
                api_key_command: [process.execPath, '-e', command],
              },
            },
            workers: 2,
            ...more,
          }),
        );
      writeFileSync(failing as string, '0');
      write({});
      const started = await startReplicaProcess(['--config', file as string]);
      // Each worker makes one call at its start. After the reload, the first call succeeds and the second one fails.
      writeFileSync(failing as string, '4');
      write({ recovery: { max_attempts: 7 } });
      const response = await fetch(`${started.admin}/reload`, { method: 'POST' });
      expect(await response.json()).toMatchObject({
        outcome: 'applied',
        changed: ['recovery.max_attempts'],
        replaced: [{ worker: 2, reason: expect.stringContaining('api_key_command') }],
      });
      await until(() => pidsOf(started).length === 3);
      expect(linesOf(started, 'a worker serves').at(-1)?.worker).toBe(2);
      const again = await fetch(`${started.admin}/reload`, { method: 'POST' });
      expect(await again.json()).toMatchObject({ outcome: 'unchanged' });
    },
    TEST_MAX_MS,
  );

  test(
    'has one feed of what happens in all workers, which begins again when there are others',
    async () => {
      const url = await slowProvider(32);
      const started = await startReplicaProcess(['--upstream', `${url}/v1`, '--workers', '2']);
      const feed = await openFeed(started.admin);
      await feed.next('snapshot');
      // One after the other, because a worker that has not accepted its last connection yet is passed over.
      const answers: Response[] = [];
      while (answers.length < 4) answers.push(await post(started.api));
      const { status } = await feed.until<FeedUpdate>('update', (update) => update.status?.runs.live === 4);
      expect(status?.fleet.map(({ self, runs }) => [self, runs])).toEqual([
        [true, 2],
        [true, 2],
      ]);
      await Promise.all(answers.map((answer) => answer.text()));
      const keys = new Set<number>();
      await feed.until<FeedUpdate>('update', ({ changed = [] }) => {
        for (const { key, state } of changed) if (state === 'ended') keys.add(key);
        return keys.size === 4;
      });
      process.kill(pidsOf(started)[0] ?? 0, 'SIGKILL');
      await feed.ended;
      await until(() => pidsOf(started).length === 3);
      const snapshot = await (await openFeed(started.admin)).next<FeedSnapshot>('snapshot');
      expect(snapshot.status.fleet.filter(({ self }) => self)).toHaveLength(2);
      expect(snapshot.runs.ended).toHaveLength(2);
    },
    TEST_MAX_MS,
  );

  test(
    'ends with the error of its workers where none can start, said once',
    async () => {
      const file = join(temporaryDirectory(), 'not-a-directory');
      writeFileSync(file, '');
      const { status, stderr } = await runCli([
        'serve',
        ...UPSTREAM,
        '--workers',
        '2',
        '--port',
        '0',
        '--admin-port',
        '0',
        '--store',
        `file:${file}`,
      ]);
      expect(status).toBe(2);
      expect(stderr.match(/^holdfast: /gm)).toHaveLength(1);
      expect(stderr).toContain(file);
    },
    TEST_MAX_MS,
  );

  test(
    'ends with a port that is in use before it has any workers',
    async () => {
      const { api } = await startReplicaProcess([...UPSTREAM, '--store', 'memory']);
      const { port } = new URL(api);
      const { status, stderr, stdout } = await runCli([
        'serve',
        ...UPSTREAM,
        '--workers',
        '2',
        '--port',
        port,
        '--admin-port',
        '0',
      ]);
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      expect(stderr).toMatch(/^holdfast: listen\.port: cannot listen .* \(EADDRINUSE\)/);
      expect(stderr.match(/^holdfast: /gm)).toHaveLength(1);
    },
    TEST_MAX_MS,
  );

  test.each([
    {
      words: ['--workers', 'many'],
      says: '--workers: workers: must be a whole number, or auto, not "many".',
    },
    { words: ['--workers', '0'], says: '--workers: workers: must be at least 1, not 0.' },
    {
      words: ['--workers', '2', '--store', 'memory'],
      says: '--workers: workers: must be 1 where checkpoint.store is memory',
    },
    {
      words: ['--workers', 'auto', '--store', 'memory'],
      says: '--workers: workers: must be 1 where checkpoint.store is memory',
    },
  ])('refuses $words', async ({ words, says }) => {
    const { status, stderr } = await runCli(['serve', ...UPSTREAM, ...words]);
    expect(status).toBe(2);
    expect(stderr).toContain(says);
  });
});
