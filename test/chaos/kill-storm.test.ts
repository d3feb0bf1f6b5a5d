import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { seedOr } from '../cases.ts';
import { Deployment, type Listen } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { callTo } from '../e2e/situations.ts';
import { fetchRun } from '../e2e/talk.ts';
import { keptPort } from '../kept-port.ts';
import { needs } from '../needs.ts';
import type { Part, Plan } from '../provider/script.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { checkLog } from './log-check.ts';
import { judge, receive, Tally } from './verdict.ts';
import { CHAT } from './wire-question.ts';

// TypeScript that isn't compiled takes longer to start than a replica lives in this test.
process.env.HOLDFAST_CLI ??= fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

const SEED = seedOr(20_261_123);
const RUNS = Number(process.env.HOLDFAST_STORM_RUNS ?? 8);
/** Concurrent streams. */
const STREAMS = 16;
/** Limits the storm, so that the test ends even if replicas start slowly on a busy machine. */
const KILLS_PER_RUN = 3;
const REPLICAS = 3;
const LEASE_MS = 3000;
const RUN_MAX_MS = 180_000;
const TEST_MAX_MS = 120_000 + Math.ceil(RUNS / STREAMS) * RUN_MAX_MS;
/** The minimum share of exact answers. The clients of all other answers have to know that theirs are incomplete. */
const EXACT_SHARE = 0.99;

const STORY_LINE_MAX = 400;

const redis = await redisBinary();

interface Kill {
  /** After the previous kill. */
  readonly after_ms: number;
  readonly victim: number;
}

const kills: fc.Arbitrary<Kill> = fc.noBias(
  fc.record({ after_ms: fc.integer({ min: 500, max: 2000 }), victim: fc.nat({ max: REPLICAS - 1 }) }),
);

/** Answers of 25 to 50 events per second that last at least six seconds, while replicas live for less than four. */
const plans: fc.Arbitrary<Plan> = fc
  .record({
    words: fc.integer({ min: 250, max: 450 }),
    delay_ms: fc.integer({ min: 20, max: 40 }),
    salt: fc.nat({ max: 999 }),
    hasCall: fc.boolean(),
  })
  .map(({ words, delay_ms, salt, hasCall }) => {
    const text: Part = {
      text: Array.from({ length: words }, (_, index) => `w${salt}-${index} 満潮 🌊`).join(' '),
    };
    const call: Part = { tool: callTo('call_brest', `Brest ${salt}`) };
    return { parts: hasCall ? [text, call] : [text], delay_ms, prefill: 'vllm', chunk: 9 };
  });

/** Replicas on fixed ports: a process that dies is replaced on the same port. */
class Storm {
  readonly #deployment: Deployment;
  readonly #listens: readonly Listen[];
  readonly #living: (HoldfastProcess | undefined)[] = [];
  readonly #starting: Promise<unknown>[] = [];
  #isOver = false;
  kills = 0;

  private constructor(deployment: Deployment, listens: readonly Listen[]) {
    this.#deployment = deployment;
    this.#listens = listens;
  }

  static async over(deployment: Deployment): Promise<Storm> {
    const listens: Listen[] = [];
    while (listens.length < REPLICAS)
      listens.push({ port: await keptPort(listens.map(({ port }) => port)), admin_port: 0 });
    const storm = new Storm(deployment, listens);
    await Promise.all(listens.map((_, slot) => storm.#start(slot)));
    return storm;
  }

  get urls(): string[] {
    return this.#listens.map(({ port }) => `http://127.0.0.1:${port}`);
  }

  /** Kills one listening replica after the other and restarts it, until the storm is ended. */
  async rage(script: readonly Kill[]): Promise<void> {
    for (const { after_ms, victim } of script) {
      await pause(after_ms);
      if (this.#isOver) return;
      const slots = [...this.#living.keys()].filter((slot) => this.#living[slot]);
      const slot = slots[victim % Math.max(slots.length, 1)];
      if (slot === undefined) continue;
      const replica = this.#living[slot];
      this.#living[slot] = undefined;
      await replica?.kill('SIGKILL');
      this.kills++;
      this.#starting.push(this.#start(slot));
    }
  }

  /** Resolves once all replicas are running. */
  async end(): Promise<readonly HoldfastProcess[]> {
    this.#isOver = true;
    await Promise.all(this.#starting);
    return this.#living.filter((process) => process !== undefined);
  }

  async #start(slot: number): Promise<void> {
    this.#living[slot] = await this.#deployment.addReplica(this.#listens[slot]);
  }
}

/** The log lines of all replicas about a run, in order. */
const storyOf = (run: string, { replicas }: Deployment): string =>
  replicas
    .flatMap(({ log, pid }) =>
      log.filter((line) => line.run === run).map(({ time, ...line }) => ({ time, pid, ...line })),
    )
    .map((line) => JSON.stringify(line).slice(0, STORY_LINE_MAX))
    .toSorted()
    .join('\n');

describe(`a storm that kills replicas, with Redis (seed ${SEED})`, needs(redis), () => {
  test.each(['interval', 'write_ahead'] as const)(
    `${RUNS} answers are whole through the client, in %s mode`,
    async (durability) => {
      if ('missing' in redis) return;
      const server = await RedisServer.start({ binary: redis.path });
      onTestFinished(() => server.stop());
      const deployment = await Deployment.start({
        replicas: 0,
        secret: 's'.repeat(32),
        checkpoint: { store: server.url, lease_ms: LEASE_MS, durability },
      });
      onTestFinished(() => deployment.close());
      const storm = await Storm.over(deployment);
      const endpoints = storm.urls;
      const fetch = resumable({ endpoints });
      const asked = fc.sample(plans, { seed: SEED, numRuns: RUNS }).map((plan, index) => {
        const question = `${durability} ${index}`;
        deployment.plan(question, plan);
        return { question, plan, root: endpoints[index % REPLICAS] ?? '' };
      });
      const waiting = [...asked];
      const tally = new Tally(`kill storm, ${durability}`);
      const runs = new Map<string, Plan>();

      const askOneByOne = async (): Promise<void> => {
        for (let next = waiting.shift(); next; next = waiting.shift()) {
          const { question, plan, root } = next;
          const received = await receive(() =>
            fetch(`${root}/v1${CHAT.path}`, {
              method: 'POST',
              headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
              body: JSON.stringify(CHAT.request(question)),
              signal: AbortSignal.timeout(RUN_MAX_MS),
            }),
          );
          const verdict = judge(received, plan);
          tally.add(`${question} ${received.run}`, verdict, received);
          if (verdict.kind !== 'exact')
            console.log(`${verdict.kind}: ${verdict.why}\n${storyOf(received.run, deployment)}`);
          if (received.run !== '') runs.set(received.run, plan);
        }
      };
      const raging = storm.rage(fc.sample(kills, { seed: SEED, numRuns: KILLS_PER_RUN * RUNS }));
      await Promise.all(Array.from({ length: STREAMS }, askOneByOne));
      const [replica] = await storm.end();
      await raging;
      if (!replica) throw new Error('no replica is left');

      const again = new Tally(`kill storm, ${durability}, read once more`);
      for (const [run, plan] of runs) {
        const received = await receive(() => fetchRun(replica, `${run}/stream?starting_after=0`));
        again.add(run, judge(received, plan), received);
        expect((await checkLog(server.admin, run)).violations, run).toEqual([]);
      }
      console.log(`${tally.report()}; ${storm.kills} kills\n${again.report()}`);
      expect(tally.of('wrong')).toEqual([]);
      expect(again.of('wrong')).toEqual([]);
      expect(tally.of('exact').length).toBeGreaterThanOrEqual(Math.floor(RUNS * EXACT_SHARE));
    },
    TEST_MAX_MS,
  );
});
