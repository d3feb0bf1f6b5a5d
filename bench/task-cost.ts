// Measures what a task step costs beyond a plain request, and the space that many tasks take in Redis.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { HoldfastProcess } from '../test/e2e/holdfast-process.ts';
import { exactCpuMilliseconds } from './processes.ts';
import { findRedis, type Redis, startRedis } from './redis.ts';
import { quantile, spread } from './statistics.ts';

const USAGE = `node bench/task-cost.ts [options]     (npm run build first)

  --stores LIST     of memory, file and redis (default all of them)
  --requests N      of each kind, for each store (default 3000; 0: none)
  --tokens N        in an answer (default 20)
  --token-ms N      between two of them (default 0: all at once)
  --concurrent N    requests at a time (default 16)
  --tasks N         that are made in Redis, looked at, and deleted (default 0)
  --steps N         of each of these (default 20)
  --help            this text`;

const { values: options } = parseArgs({
  options: {
    stores: { type: 'string', default: 'memory,file,redis' },
    requests: { type: 'string', default: '3000' },
    tokens: { type: 'string', default: '20' },
    'token-ms': { type: 'string', default: '0' },
    concurrent: { type: 'string', default: '16' },
    tasks: { type: 'string', default: '0' },
    steps: { type: 'string', default: '20' },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  console.log(USAGE);
  process.exit(0);
}

const KINDS = ['no step', 'step', 'step of a session'] as const;
type Kind = (typeof KINDS)[number];
/** Rounds per kind, in rotating order, because the machine's speed varies over time. */
const ROUNDS = 30;
const WARM_UP_REQUESTS = 300;
const STEPS_PER_TASK = 20;
const CONCURRENT = Number(options.concurrent);
const [TOKENS, TOKEN_MS] = [Number(options.tokens), Number(options['token-ms'])];

process.env.HOLDFAST_CLI ??= join(import.meta.dirname, '../dist/cli.js');
const directory = mkdtempSync(join(tmpdir(), 'holdfast-task-cost-'));
const provider = http.createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  void answer(response);
});
provider.listen(0, '127.0.0.1');
await once(provider, 'listening');
const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENT });
async function answer(response: http.ServerResponse): Promise<void> {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  for (let token = 0; token < TOKENS; token++) {
    response.write(chunk({ content: `word${token} ` }));
    if (TOKEN_MS > 0) await new Promise((resolve) => setTimeout(resolve, TOKEN_MS));
  }
  response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
}

type Measurement = (holdfast: HoldfastProcess, store: string, redis: Redis | undefined) => Promise<void>;

async function withStore(name: string, measure: Measurement): Promise<void> {
  const program = name === 'redis' ? findRedis() : undefined;
  if (name === 'redis' && program === undefined) return console.log('redis: there is no redis-server here');
  const redis = program === undefined ? undefined : await startRedis(program, directory);
  const { port } = provider.address() as AddressInfo;
  const holdfast = await HoldfastProcess.start({
    secret: 'the secret of this measurement, long enough to prove with',
    upstreams: { provider: { base_url: `http://127.0.0.1:${port}/v1` } },
    checkpoint: { store: redis?.url ?? (name === 'file' ? `file:${join(directory, 'store')}` : name) },
  });
  try {
    await measure(holdfast, name, redis);
  } finally {
    await holdfast.stop();
    await holdfast.close();
    await redis?.stop();
  }
}

let serial = 0;

/** Resolves with the status and the body. */
async function ask(
  holdfast: HoldfastProcess,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  fields?: object,
): Promise<{ readonly status: number; readonly body: string }> {
  const body = fields && JSON.stringify(fields);
  const request = http.request(new URL(path, holdfast.url), {
    agent,
    method,
    headers: {
      authorization: 'Bearer sk-1',
      ...headers,
      ...(body && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
    },
  });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode ?? 0, body: await text(response) };
}

async function complete(holdfast: HoldfastProcess, headers: Record<string, string>): Promise<void> {
  const messages = [{ role: 'user', content: `question ${serial++}` }];
  const { status } = await ask(holdfast, 'POST', '/v1/chat/completions', headers, {
    model: 'm',
    stream: true,
    messages,
  });
  if (status !== 200) throw new Error(`the answer was ${status}`);
}

/** Runs `work` for the indexes 0 to `count` - 1, at most CONCURRENT at a time. */
async function each(count: number, work: (index: number, worker: number) => Promise<void>): Promise<void> {
  let next = 0;
  const workers = Array.from({ length: CONCURRENT }, async (_, worker) => {
    while (next < count) await work(next++, worker);
  });
  await Promise.all(workers);
}

/** Steps asked so far, by kind and worker. */
const asked = new Map<string, number>();

/** Each worker is an agent: it works on one task after the other, one step at a time. */
function nextHeaders(kind: Kind, worker: number): Record<string, string> {
  if (kind === 'no step') return {};
  const agent = `${kind}, agent ${worker}`;
  const steps = asked.get(agent) ?? 0;
  asked.set(agent, steps + 1);
  const task = `${agent}, task ${Math.floor(steps / STEPS_PER_TASK)}`;
  return { 'holdfast-task': task, ...(kind === 'step of a session' && { 'holdfast-task-session': 'first' }) };
}

const costs =
  (requests: number): Measurement =>
  async (holdfast, store) => {
    const round = async (kind: Kind, count: number) => {
      const before_ms = exactCpuMilliseconds(holdfast.pid);
      await each(count, (_, worker) => complete(holdfast, nextHeaders(kind, worker)));
      return ((exactCpuMilliseconds(holdfast.pid) - before_ms) * 1000) / count;
    };
    for (const kind of KINDS) await round(kind, WARM_UP_REQUESTS);
    const cpu_us = new Map<Kind, number[]>(KINDS.map((kind) => [kind, []]));
    for (let number = 0; number < ROUNDS; number++)
      for (let turn = 0; turn < KINDS.length; turn++) {
        const kind = KINDS[(number + turn) % KINDS.length] as Kind;
        cpu_us.get(kind)?.push(await round(kind, Math.ceil(requests / ROUNDS)));
      }
    const without = cpu_us.get('no step') ?? [];
    for (const [kind, took_us] of cpu_us) {
      const ratios = took_us.map((us, number) => us / (without[number] ?? Number.NaN));
      const said = `${spread(took_us).median.toFixed(0)} µs of processor time, × ${spread(ratios).median.toFixed(3)}`;
      console.log(`${store}, ${kind}: ${said} (medians of ${ROUNDS} rounds)`);
    }
  };

const census =
  (tasks: number, steps: number): Measurement =>
  async (holdfast, _store, redis) => {
    if (!redis) throw new Error('tasks are counted in Redis');
    const figures = async () => ({
      bytes: await redis.figure('used_memory'),
      commands: (await redis.calls())[1],
      keys: await redis.keys(),
    });
    const headers = (index: number) => ({
      'holdfast-task': `task ${index % tasks}`,
      'holdfast-task-session': 'first',
    });
    const measured = async (what: string, count: number, work: (index: number) => Promise<void>) => {
      const before = await figures();
      await each(count, work);
      const after = await figures();
      const per = (name: 'bytes' | 'commands'): string => ((after[name] - before[name]) / count).toFixed(1);
      console.log(
        `${count} ${what}: ${per('bytes')} bytes and ${per('commands')} commands each; ${after.keys} keys`,
      );
    };
    await measured('requests that are no steps', tasks, () => complete(holdfast, {}));
    await measured(`steps of ${tasks} tasks`, tasks * steps, (index) => complete(holdfast, headers(index)));
    for (const path of ['?limit=20', '/task%201', '/task%201/steps?limit=20']) {
      const took_ms: number[] = [];
      await each(1000, async () => {
        const began_ms = performance.now();
        const { status } = await ask(holdfast, 'GET', `/holdfast/v1/tasks${path}`);
        if (status !== 200) throw new Error(`the answer was ${status}`);
        took_ms.push(performance.now() - began_ms);
      });
      const p99_ms = quantile(
        took_ms.toSorted((one, other) => one - other),
        0.99,
      );
      console.log(`GET /holdfast/v1/tasks${path}, ${CONCURRENT} at a time: p99 ${p99_ms.toFixed(1)} ms`);
    }
    await measured('tasks deleted', tasks, async (index) => {
      const { status } = await ask(holdfast, 'DELETE', `/holdfast/v1/tasks/task%20${index}`);
      if (status !== 200) throw new Error(`the answer was ${status}`);
    });
    const { body } = await ask(holdfast, 'GET', '/holdfast/v1/tasks');
    console.log(`left: ${JSON.parse(body).data.length} tasks in the list`);
  };

try {
  const requests = Number(options.requests);
  if (requests > 0) for (const store of options.stores.split(',')) await withStore(store, costs(requests));
  const tasks = Number(options.tasks);
  if (tasks > 0) await withStore('redis', census(tasks, Number(options.steps)));
} finally {
  agent.destroy();
  provider.close();
  provider.closeAllConnections();
  rmSync(directory, { recursive: true, force: true });
}
