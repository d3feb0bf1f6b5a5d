import { setTimeout as pause } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { seedOr } from '../cases.ts';
import { Deployment, type DeploymentOptions } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { post } from '../e2e/raw-client.ts';
import { callsOf, textOf } from '../e2e/situations.ts';
import { needs } from '../needs.ts';
import type { Plan } from '../provider/script.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import type { StreamReading } from '../simulation/stream-reading.ts';
import { checkLog } from './log-check.ts';
import { type ChaosRun, chaosRuns } from './script.ts';
import { CHAT, MESSAGES, RESPONSES, type WireQuestion } from './wire-question.ts';

const SEED = seedOr(20_261_121);
/** The minimum number of takeovers in each test. */
const RUNS = Number(process.env.HOLDFAST_DEATHS ?? 100);
/** The minimum for each of the other wires. */
const RUNS_ON_WIRE = Math.ceil((RUNS * 2) / 15);
const RUNS_PER_ROUND = 30;
/** Counted from the moment when all answers of a round have been requested; each takes 0.3 to 1.5 s. */
const KILL_AFTER_MAX_MS = 400;
const LEASE_MS = 1000;
/** The replicas' clocks need not agree. */
const CLOCK_SKEW_MS = 3_600_000;
const ROUND_MAX_MS = 60_000;
const TEST_MAX_MS = 60_000 + 2_000 * RUNS;
const SECRET = 'the secret that all replicas share';

const redis = await redisBinary();

describe(`replicas that die, with Redis (seed ${SEED})`, needs(redis), () => {
  let server: RedisServer;
  let deployment: Deployment;

  beforeAll(async () => {
    if ('missing' in redis) return;
    // Appended entries survive the process without a wait for the disk; they needn't survive the machine.
    const durable = ['appendonly yes', 'appendfsync no'];
    server = await RedisServer.start({ binary: redis.path, configuration: durable });
  });
  afterAll(() => server?.stop());
  afterEach(() => deployment.close());

  async function deploy(options: DeploymentOptions = {}): Promise<void> {
    const checkpoint = { store: server.url, lease_ms: LEASE_MS, ...options.checkpoint };
    deployment = await Deployment.start({
      replicas: 2,
      secret: SECRET,
      clock_skew_ms: CLOCK_SKEW_MS,
      ...options,
      checkpoint,
    });
  }

  /** The living replicas; the first one is the next to be killed. */
  let living: HoldfastProcess[] = [];
  const died = { runs: 0, taken_over: 0, in_continuation: 0 };

  /** Kills the replica that delivers the answers of a round, and starts a replacement. */
  async function killOne(after_ms: number): Promise<void> {
    await pause(after_ms);
    const [victim, survivor] = living;
    if (!victim || !survivor) throw new Error('no replica is left');
    living = [survivor];
    await victim.kill('SIGKILL');
    living.push(await deployment.addReplica());
  }

  async function checkRun(run: string, question: string): Promise<void> {
    const facts = await checkLog(server.admin, run);
    expect(facts.violations, question).toEqual([]);
    died.runs++;
    if (facts.epochs > 1) died.taken_over++;
    if (facts.epochs > 1 && deployment.requests(question).length > 2) died.in_continuation++;
  }

  const questionOf = (round: number, index: number) => `round ${round}, question ${index}`;
  const killTime = (round: number) => (KILL_AFTER_MAX_MS * ((round * 7) % 10)) / 10;

  /**
   * Sends every run of a round to the first replica and kills that replica meanwhile, until `runs` of them have been
   * taken over.
   */
  async function play(
    name: string,
    ask: (question: string, run: ChaosRun) => Promise<string>,
    meanwhile: (round: number) => Promise<unknown> = (round) => killOne(killTime(round)),
    runs: number = RUNS,
  ): Promise<void> {
    Object.assign(died, { runs: 0, taken_over: 0, in_continuation: 0 });
    living = [...deployment.replicas];
    // Answers that have ended, or not begun, when the replica dies don't count, so play rounds until enough runs were
    // taken over.
    const rounds_max = Math.ceil((4 * runs) / RUNS_PER_ROUND);
    for (let round = 0; died.taken_over < runs && round < rounds_max; round++) {
      const asked = chaosRuns(SEED + round, RUNS_PER_ROUND).map(async (run, index) => {
        const question = questionOf(round, index);
        deployment.plan(question, run.plan);
        await pause(run.delay_ms);
        await checkRun(await ask(question, run), question);
      });
      const begun = asked.map((_, index) => deployment.asked(questionOf(round, index)));
      await Promise.all([...asked, Promise.all(begun).then(() => meanwhile(round))]);
    }
    console.log(
      `${name}: ${died.runs} answers whole, ${died.taken_over} taken over, ${died.in_continuation} of them after a cut by the provider`,
    );
    expect(died.taken_over).toBeGreaterThanOrEqual(runs);
    expect(died.in_continuation).toBeGreaterThan(runs / 20);
  }

  /** Asks through `holdfast/client`; resolves with the id of the run once the answer has proven complete. */
  async function askThroughClient(
    question: string,
    { plan }: ChaosRun,
    wire: WireQuestion = CHAT,
  ): Promise<string> {
    const endpoints = living.map(({ url }) => url);
    const fetch = resumable({ endpoints, maxRetries: 40 });
    const response = await fetch(endpoints[0] + wire.path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
      body: JSON.stringify(wire.request(question)),
      signal: AbortSignal.timeout(ROUND_MAX_MS),
    });
    expectWhole(wire.read(await response.text()), plan, question);
    return response.headers.get('holdfast-run-id') ?? '';
  }

  /**
   * Asks with the plain SDK. After an error, it does what an application does: ask the same question of another
   * replica.
   */
  async function askAgainAndAgain(question: string, { plan }: ChaosRun): Promise<string> {
    const urls = living.map(({ url }) => url);
    for (let time = 0; ; time++) {
      const baseURL = urls[time % urls.length];
      const client = new OpenAI({ baseURL, apiKey: 'client-key', maxRetries: 0, timeout: ROUND_MAX_MS });
      const request = CHAT.request(question) as never;
      try {
        const { data, response } = await client.chat.completions.create(request).withResponse();
        let text = '';
        const calls: string[] = [];
        for await (const { choices } of data as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>) {
          text += choices[0]?.delta.content ?? '';
          for (const call of choices[0]?.delta.tool_calls ?? []) {
            calls[call.index] = (calls[call.index] ?? '') + (call.function?.arguments ?? '');
          }
        }
        expect(text, question).toBe(textOf(plan));
        expect(calls, question).toEqual(callsOf(plan).map((call) => call.arguments));
        return response.headers.get('holdfast-run-id') ?? '';
      } catch (error) {
        if (!(error instanceof OpenAI.APIError || error instanceof TypeError) || time > 5) throw error;
      }
    }
  }

  test.each(['interval', 'write_ahead'])(
    `${RUNS} answers are whole through the client, in %s mode`,
    async (durability) => {
      await deploy({ checkpoint: { durability } });
      await play(durability, askThroughClient);
    },
    TEST_MAX_MS,
  );

  test.each([MESSAGES, RESPONSES])(
    `${RUNS_ON_WIRE} answers on $path are whole through the client`,
    async (wire) => {
      await deploy();
      const ask = (question: string, run: ChaosRun) => askThroughClient(question, run, wire);
      await play(wire.path, ask, undefined, RUNS_ON_WIRE);
    },
    TEST_MAX_MS,
  );

  test(
    `${RUNS} answers are whole for an application that repeats its request`,
    async () => {
      await deploy();
      await play('repeated', askAgainAndAgain);
    },
    TEST_MAX_MS,
  );

  test(
    `${RUNS} answers are whole though Redis dies and comes back, and then a replica dies`,
    async () => {
      await deploy();
      await play('Redis dies as well', askThroughClient, async (round) => {
        await pause(killTime(round) / 2);
        await server.kill();
        await pause(killTime(round) / 2);
        await server.start();
        await killOne(0);
      });
    },
    TEST_MAX_MS,
  );

  test(
    'no healthy stream is broken by the death of Redis',
    async () => {
      await deploy();
      const asked: string[] = [];
      const ask = async (question: string, { plan }: ChaosRun) => {
        const response = await post(deployment.holdfast.url, CHAT.request(question));
        expectWhole(CHAT.read(await response.text()), plan, question);
        asked.push(question);
      };
      const runs = chaosRuns(SEED, RUNS_PER_ROUND).map(async (run, index) => {
        const question = `healthy ${index}`;
        deployment.plan(question, run.plan);
        await pause(run.delay_ms);
        await ask(question, run);
      });
      await pause(300);
      await server.kill();
      await Promise.all(runs);
      expect(asked).toHaveLength(RUNS_PER_ROUND);
      await server.start();
    },
    ROUND_MAX_MS,
  );
});

/** All the text, each call once, and one end. */
function expectWhole(stream: StreamReading, plan: Plan, question: string): void {
  expect(stream.violations, question).toEqual([]);
  expect(stream.error, `${question}: ${JSON.stringify(stream.error)}`).toBeUndefined();
  expect(stream.text === textOf(plan), `${question}: ${firstDifference(stream.text, textOf(plan))}`).toBe(
    true,
  );
  expect(
    stream.toolCalls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text })),
    question,
  ).toEqual(callsOf(plan));
  expect(stream.finish, question).toBe(callsOf(plan).length > 0 ? 'tool_calls' : 'stop');
  expect(stream.usage, question).toBeDefined();
  expect(stream.done, question).toBe(true);
}

/** Answers of a megabyte are too long for a report. */
function firstDifference(text: string, expected: string): string {
  let at = 0;
  while (at < expected.length && text[at] === expected[at]) at++;
  return `text of ${text.length} characters, expected ${expected.length}; they differ at ${at}`;
}
