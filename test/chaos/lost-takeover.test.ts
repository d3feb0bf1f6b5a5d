import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seedOr } from '../cases.ts';
import { Deployment } from '../e2e/deployment.ts';
import { post } from '../e2e/raw-client.ts';
import { RESUMABLE, talkRequest } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisSentinel } from '../redis/redis-sentinel.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { Comparison, readRun, unrepeatable } from './unrepeatable.ts';
import { type Received, receive } from './verdict.ts';

const SEED = seedOr(20_261_123);
/** Runs for each way to lose the takeover. */
const RUNS = Number(process.env.HOLDFAST_LOSSES ?? 6);
/** All on the replica that is stopped. */
const RUNS_PER_ROUND = 6;
const LEASE_MS = 1000;
const ROUND_MAX_MS = 60_000;
/** How long an answer streams before anything happens. */
const BEGINNING_MS = 1000;
const WORDS = 260;

const redis = await redisBinary();

interface Round {
  /** Counted from the takeover. */
  readonly lost_after_ms: number;
  /**
   * When the stopped replica resumes, counted from the return of Redis. If negative, it resumes before Redis is lost.
   */
  readonly resumed_after_ms: number;
  readonly durability: 'interval' | 'write_ahead';
}

const rounds: fc.Arbitrary<Round> = fc.noBias(
  fc.record({
    lost_after_ms: fc.integer({ min: 0, max: 600 }),
    resumed_after_ms: fc.integer({ min: -400, max: 1500 }),
    durability: fc.constantFrom('interval', 'write_ahead'),
  }),
);

/** A store that can forget a takeover. */
interface Losing {
  readonly url: string;
  /** Fixes the current state as the one that remains after the loss. */
  keep(): Promise<void>;
  /** Resolves once everything that `happens` wrote is lost and Redis is available again. */
  lose(happens: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

async function restart(binary: string): Promise<Losing> {
  const server = await RedisServer.start({ binary });
  return {
    url: server.url,
    keep: async () => void (await server.admin.save()),
    lose: async (happens) => {
      await happens();
      await server.kill();
      await server.start();
    },
    stop: () => server.stop(),
  };
}

async function failover(binary: string): Promise<Losing> {
  const servers = await RedisSentinel.start(binary);
  return {
    url: servers.url,
    keep: () => servers.synchronize(),
    lose: (happens) => servers.loseWhat(happens),
    stop: () => servers.stop(),
  };
}

interface Answers {
  readonly question: string;
  /** By the first client, by the reader that triggered the takeover, and by those that read the run afterwards. */
  readonly received: readonly Received[];
}

/**
 * Stops one replica, lets the other take its runs over, makes Redis lose the takeover, and lets both replicas continue.
 */
async function play(losing: Losing, round: Round, name: string): Promise<readonly Answers[]> {
  const { durability, lost_after_ms, resumed_after_ms } = round;
  const checkpoint = { store: losing.url, lease_ms: LEASE_MS, durability };
  const deployment = await Deployment.start({ replicas: 2, secret: 's'.repeat(32), checkpoint });
  const { holdfast, other } = deployment;
  try {
    const questions = Array.from({ length: RUNS_PER_ROUND }, (_, index) => `${name}, ${index}`);
    const begun = await Promise.all(
      questions.map(async (question) => {
        deployment.plan(question, unrepeatable(WORDS));
        const response = await post(holdfast.url, talkRequest(question), RESUMABLE);
        const run = response.headers.get('holdfast-run-id') ?? '';
        return { question, run, first: receive(async () => response) };
      }),
    );
    await pause(BEGINNING_MS);
    await losing.keep();
    process.kill(holdfast.pid, 'SIGSTOP');
    let seconds: Promise<Received>[] = [];
    await losing.lose(async () => {
      await pause(LEASE_MS);
      seconds = begun.map(({ run }) => readRun(other, run));
      for (const { run } of begun)
        await other.logged((line) => line.msg === 'taken over' && line.run === run);
      await pause(lost_after_ms);
      if (resumed_after_ms < 0) process.kill(holdfast.pid, 'SIGCONT');
      await pause(Math.max(-resumed_after_ms, 0));
    });
    await pause(Math.max(resumed_after_ms, 0));
    process.kill(holdfast.pid, 'SIGCONT');
    const answers: Answers[] = [];
    for (const [index, { question, run, first }] of begun.entries()) {
      const received = [await first, (await seconds[index]) as Received];
      for (const replica of [holdfast, other]) received.push(await readRun(replica, run));
      answers.push({ question, received });
    }
    return answers;
  } finally {
    process.kill(holdfast.pid, 'SIGCONT');
    await deployment.close();
    await losing.stop();
  }
}

describe(`Redis loses a takeover that it had acknowledged (seed ${SEED})`, needs(redis), () => {
  test.each([
    { how: 'restarted from a snapshot', start: restart },
    { how: 'failed over by Sentinel', start: failover },
  ])(
    `${RUNS} answers on a Redis that is $how: no two different ones are complete`,
    async ({ how, start }) => {
      if ('missing' in redis) return;
      const comparison = new Comparison(`lost takeovers, ${how}`);
      const script = fc.sample(rounds, { seed: SEED, numRuns: Math.ceil(RUNS / RUNS_PER_ROUND) });
      for (const [index, round] of script.entries()) {
        const answers = await play(await start(redis.path), round, `${how} ${index}`);
        for (const { question, received } of answers)
          comparison.add(`${question}, ${JSON.stringify(round)}`, unrepeatable(WORDS), received);
      }
      console.log(comparison.report());
      expect(comparison.wrong).toEqual([]);
    },
    60_000 + Math.ceil(RUNS / RUNS_PER_ROUND) * ROUND_MAX_MS,
  );
});
