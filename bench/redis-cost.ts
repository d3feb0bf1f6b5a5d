// Measures Redis commands and bytes per stream: `node bench/redis-cost.ts [--seconds 15] [--runs 1,20,200] [--sealed]`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { CheckpointScheduler } from '../src/checkpoint/checkpoint-scheduler.ts';
import type { RunHeader } from '../src/checkpoint/journal.ts';
import { JournalWriter } from '../src/checkpoint/journal-writer.ts';
import { newRunId } from '../src/checkpoint/owner.ts';
import { parseRedisUrl } from '../src/checkpoint/redis/address.ts';
import { RedisStore } from '../src/checkpoint/redis/store.ts';
import { createProofs, createSeal } from '../src/checkpoint/seal.ts';
import type { Owner } from '../src/checkpoint/store.ts';
import { systemTime } from '../src/lib/time.ts';
import { findRedis, type Redis, startRedis } from './redis.ts';

const EVENT_MS = 20;
const WARM_UP_MS = 2000;
const TTL_MS = 604_800_000;
const OWNER = 'a'.repeat(64) as Owner;
const SECRET = 'the secret of this measurement, long enough to seal with';
/** 4.5 characters on average, like tokens of English prose. */
const TOKENS =
  'When| a| replica| dies|,| another| one| continues| its| runs|:| it| reads| what| was| stored|,| opens| the| next| ep|och|,| and| asks| the| provider| for| the| rest|.| Nothing| that| was| shown| is| shown| again|.'.split(
    '|',
  );

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '15' },
    runs: { type: 'string', default: '1,20,200' },
    sealed: { type: 'boolean', default: false },
  },
});

const program = findRedis();
if (program === undefined) throw new Error('there is no redis-server and no valkey-server here');
const directory = mkdtempSync(join(tmpdir(), 'holdfast-redis-cost-'));
const redis = await startRedis(program, directory);
try {
  for (const count of options.runs.split(',').map(Number)) await measure(redis, count);
} finally {
  await redis.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function measure(server: Redis, count: number): Promise<void> {
  const seal = options.sealed ? createSeal([SECRET]) : createProofs(SECRET);
  const address = parseRedisUrl(server.url);
  const quiet = { onError: fail, onOutage: fail, onRecovery: () => {} };
  const store = new RedisStore({ address, ttl_ms: TTL_MS, lease_ms: 3000, seal, ...quiet });
  await store.start({ required: true });
  const scheduler = new CheckpointScheduler({ interval_ms: 100, time: systemTime });
  const writers = await Promise.all(
    Array.from({ length: count }, async () => {
      const lease = await store.acquire(newRunId(), OWNER);
      const told = { onAppend: () => {}, onError: fail, onStale: fail };
      return new JournalWriter({ store, lease, scheduler, start: header(), ...told });
    }),
  );
  let [events, units] = [0, 0];
  const say = (writer: JournalWriter) => {
    const text = TOKENS[Math.floor(Math.random() * TOKENS.length)] as string;
    writer.record({ deltas: [{ kind: 'text', text }] });
    events++;
    units += text.length;
  };
  const timers: NodeJS.Timeout[] = [];
  for (const writer of writers) {
    // Staggers the starts, because real answers don't begin at the same time.
    await pause(EVENT_MS / count);
    timers.push(setInterval(() => say(writer), EVENT_MS));
  }
  await pause(WARM_UP_MS);
  const before = { ...(await figures(server)), events, units, cpu: process.cpuUsage() };
  await pause(Number(options.seconds) * 1000);
  const after = { ...(await figures(server)), events, units };
  const cpu = process.cpuUsage(before.cpu);
  for (const timer of timers) clearInterval(timer);
  await Promise.all(writers.map((writer) => writer.close({ status: 'complete' })));
  await store.close();
  const said = after.events - before.events;
  const per = (name: 'scripts' | 'commands' | 'input_bytes' | 'redis_us', divisor: number) =>
    ((after[name] - before[name]) / divisor).toFixed(3);
  console.log(
    [
      `${count} runs, ${said} events of ${((after.units - before.units) / said).toFixed(1)} characters`,
      `${per('scripts', said)} script calls per event`,
      `${per('commands', said)} commands per event, those in scripts included`,
      `${per('input_bytes', after.units - before.units)} bytes per byte of text`,
      `${per('redis_us', said)} µs of Redis per event`,
      `${((cpu.user + cpu.system) / said).toFixed(1)} µs of this process per event`,
    ].join(' · '),
  );
}

async function figures(server: Redis) {
  const [scripts, commands, redis_us] = await server.calls('evalsha', 'eval');
  return { scripts, commands, redis_us, input_bytes: await server.figure('total_net_input_bytes') };
}

function header(): RunHeader {
  const created_at_ms = Date.now();
  return { wire: 'chat_completions', created_at_ms, model: 'gpt-4.1', upstream: 'openai', events: 'none' };
}

function fail(error: unknown): void {
  console.error(error);
  process.exitCode = 1;
}
