import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { judge, receive, Tally } from '../chaos/verdict.ts';
import { CHAT } from '../chaos/wire-question.ts';
import { Deployment, type DeploymentOptions } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { callTo } from '../e2e/situations.ts';
import { needs } from '../needs.ts';
import type { Plan } from '../provider/script.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';

// Run the compiled program: each process takes seconds to start from the sources.
process.env.HOLDFAST_CLI ??= fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

const STREAMS = 16;
const WORKERS = 2;
const KILLS = 4;
const KILL_EVERY_MS = 1500;
const LEASE_MS = 3000;
const RUN_MAX_MS = 120_000;
const TEST_MAX_MS = 180_000;

const redis = await redisBinary();

/** Answers that take twenty seconds, which is longer than the workers that give them live. */
const planOf = (index: number): Plan => ({
  parts: [
    { text: Array.from({ length: 600 }, (_, word) => `w${index}-${word} 満潮 🌊`).join(' ') },
    ...(index % 2 === 0 ? [{ tool: callTo('call_brest', `Brest ${index}`) }] : []),
  ],
  delay_ms: 25,
  prefill: 'vllm',
  chunk: 9,
});

/** The process ids of all workers that have ever served, in order. */
const pidsOf = ({ log }: HoldfastProcess): number[] =>
  log.filter(({ msg }) => msg === 'a worker serves').map(({ pid }) => Number(pid));

async function survivesDeaths(options: DeploymentOptions): Promise<void> {
  const { checkpoint } = options;
  const deployment = await Deployment.start({
    ...options,
    workers: WORKERS,
    checkpoint: { ...checkpoint, lease_ms: LEASE_MS },
  });
  onTestFinished(() => deployment.close());
  const { holdfast } = deployment;
  const fetch = resumable({});
  const tally = new Tally('workers that die');
  let waiting = STREAMS;
  const ask = async (index: number): Promise<void> => {
    const question = `question ${index}`;
    const plan = planOf(index);
    deployment.plan(question, plan);
    const received = await receive(() =>
      fetch(`${holdfast.url}${CHAT.path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
        body: JSON.stringify(CHAT.request(question)),
        signal: AbortSignal.timeout(RUN_MAX_MS),
      }),
    );
    waiting--;
    tally.add(question, judge(received, plan), received);
  };
  const killing = async (): Promise<number> => {
    let kills = 0;
    await deployment.underWay(...Array.from({ length: STREAMS }, (_, index) => `question ${index}`));
    while (kills < KILLS && waiting > 0) {
      const pid = pidsOf(holdfast)[kills] ?? 0;
      process.kill(pid, 'SIGKILL');
      kills++;
      await holdfast.logged(() => pidsOf(holdfast).length >= WORKERS + kills);
      await pause(KILL_EVERY_MS);
    }
    return kills;
  };
  const asked = Array.from({ length: STREAMS }, (_, index) => ask(index));
  const [kills] = await Promise.all([killing(), ...asked]);
  console.log(`${tally.report()}; ${kills} kills`);
  expect(kills).toBeGreaterThan(0);
  expect(tally.of('exact')).toHaveLength(STREAMS);
  expect((await holdfast.metrics()).get('holdfast_takeovers_total{outcome="taken"}')).toBeGreaterThan(0);
}

describe('workers that are killed while clients are being answered', needs(redis), () => {
  test('lose nothing, with files', () => survivesDeaths({}), TEST_MAX_MS);

  test(
    'lose nothing, with Redis',
    async () => {
      if ('missing' in redis) return;
      const server = await RedisServer.start({ binary: redis.path });
      onTestFinished(() => server.stop());
      await survivesDeaths({ secret: 's'.repeat(32), checkpoint: { store: server.url } });
    },
    TEST_MAX_MS,
  );
});
