import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { seedOr } from '../cases.ts';
import { needs } from '../needs.ts';
import type { Plan } from '../provider/script.ts';
import type { Answer } from './clients/chat-client.ts';
import { OpenaiPython, type PythonManner, type TransportOptions } from './clients/openai-python.ts';
import { Deployment, type DeploymentOptions, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { pythonEnvironment } from './python/environment.ts';
import { callTo, TIDES } from './situations.ts';
import { requestStored } from './stored-request.ts';

vi.setConfig({ testTimeout: 60_000 });

const SEED = seedOr(20_261_120);
const LEASE_MS = 600;
const CLIENTS = 4;
const MANNERS: readonly PythonManner[] = ['chunks', 'helper'];
const TEXT = Array.from({ length: 150 }, (_, index) => `w${index} à 満潮 🌊`).join(' ');
/**
 * Sends an event about every 3 ms, and stalls the first `stopped` attempts, so that no replica finishes before the test
 * stops it.
 */
const planOf = (stopped: number): Plan => ({
  parts: [{ text: TEXT }, { tool: callTo('call_brest', 'Brest') }],
  delay_ms: 3,
  faults: Array.from({ length: stopped }, () => ({ kind: 'silence', at: { event: 130 } })),
});

const environment = await pythonEnvironment();

async function deploy(options: DeploymentOptions = {}): Promise<Deployment> {
  const deployment = await Deployment.start({
    replicas: 2,
    ...options,
    checkpoint: { lease_ms: LEASE_MS, ...options.checkpoint },
  });
  onTestFinished(() => deployment.close());
  return deployment;
}

/** A client that tries `first` first. */
function connect(
  { holdfast, replicas }: Deployment,
  manner: PythonManner,
  more: Partial<TransportOptions> = {},
  first: HoldfastProcess = holdfast,
) {
  if ('missing' in environment) throw new Error(environment.missing);
  const options = { endpoints: replicas.map(({ url }) => url), max_retries: 20, ...more };
  const client = new OpenaiPython(environment.interpreter, manner, first.url, options);
  onTestFinished(() => client.close());
  return client;
}

/** Asks a question whose answer survives `stopped` stopped replicas. */
function ask(
  client: OpenaiPython,
  deployment: Deployment,
  content: string,
  stopped: number,
): Promise<Answer> {
  deployment.plan(content, planOf(stopped));
  return client.ask({ model: modelOf('vllm'), content, tools: [TIDES] });
}

/** Asks several times in every manner at once. Resolves once providers have received all of the questions. */
async function askInEveryManner(deployment: Deployment, name: string, more: Partial<TransportOptions> = {}) {
  const questions: string[] = [];
  const answers = MANNERS.flatMap((manner) => {
    const client = connect(deployment, manner, more);
    return Array.from({ length: CLIENTS }, (_, index) => {
      const question = `${name}: ${manner} ${index}`;
      questions.push(question);
      return ask(client, deployment, question, 1);
    });
  });
  await Promise.all(questions.map((question) => deployment.asked(question)));
  return { questions, answers };
}

function expectWhole({ text, toolCalls, finish, usage }: Answer): void {
  expect(text).toBe(TEXT);
  expect(toolCalls).toEqual([{ id: 'call_brest', name: 'tides', arguments: { port: 'Brest', days: 3 } }]);
  expect(finish).toBe('tool_calls');
  expect(usage).toMatchObject({ total_tokens: expect.any(Number) });
}

describe('openai for Python does not notice', needs(environment), () => {
  const MOMENTS = fc.sample(fc.integer({ min: 0, max: 400 }), { seed: SEED, numRuns: 3 });

  test.each(MOMENTS)(
    `that its replica was killed %i ms after the beginning (seed ${SEED})`,
    async (after_ms) => {
      const deployment = await deploy();
      const { questions, answers } = await askInEveryManner(deployment, `killed after ${after_ms}`);
      await setTimeout(after_ms);
      await deployment.holdfast.kill('SIGKILL');
      for (const answer of await Promise.all(answers)) expectWhole(answer);
      expect(questions.map((question) => deployment.requests(question).length)).toEqual(
        questions.map(() => 2),
      );
    },
  );

  test('that one replica after the other was killed', async () => {
    const deployment = await deploy({ replicas: 4 });
    const question = 'killed three times';
    const answer = ask(connect(deployment, 'chunks'), deployment, question, 3);
    for (const [index, replica] of deployment.replicas.slice(0, 3).entries()) {
      await deployment.asked(question, index + 1);
      await deployment.underWay(question);
      await replica.kill('SIGKILL');
    }
    expectWhole(await answer);
  });

  test('that its replica was killed in write_ahead mode', async () => {
    const deployment = await deploy({ checkpoint: { durability: 'write_ahead' } });
    const { questions, answers } = await askInEveryManner(deployment, 'killed in write_ahead mode');
    await deployment.underWay(...questions);
    await deployment.holdfast.kill('SIGKILL');
    for (const answer of await Promise.all(answers)) expectWhole(answer);
  });

  test('that its replica was asked to go', async () => {
    const deployment = await deploy({ limits: { drain_ms: 1 }, checkpoint: { lease_ms: 60_000 } });
    const { questions, answers } = await askInEveryManner(deployment, 'terminated');
    await deployment.underWay(...questions);
    await deployment.holdfast.kill('SIGTERM');
    for (const answer of await Promise.all(answers)) expectWhole(answer);
  });

  test('that its replica froze', async () => {
    const deployment = await deploy();
    const { questions, answers } = await askInEveryManner(deployment, 'frozen', { idle_s: 1 });
    await deployment.underWay(...questions);
    process.kill(deployment.holdfast.pid, 'SIGSTOP');
    const whole = await Promise.all(answers);
    process.kill(deployment.holdfast.pid, 'SIGCONT');
    for (const answer of whole) expectWhole(answer);
  });

  test.each(MANNERS)(
    'that its replica froze before the first byte, and woke up too late (%s)',
    async (manner) => {
      const deployment = await deploy();
      const { holdfast, other, store } = deployment;
      const content = `frozen before the first byte: ${manner}`;
      deployment.plan(content, {
        ...planOf(0),
        faults: [{ kind: 'silence', at: { before_headers: true }, for_ms: 2_000 }],
      });
      const parameters = { extra_headers: { 'Idempotency-Key': 'one for both' } };
      const question = { model: modelOf('vllm'), content, tools: [TIDES], parameters };
      const second = connect(deployment, manner, { endpoints: [other.url] }, other);
      const answers = [connect(deployment, manner).ask(question)];
      await deployment.asked(content);
      await requestStored(store, content);
      process.kill(holdfast.pid, 'SIGSTOP');
      answers.push(second.ask(question));
      // The other replica has taken the run over.
      await deployment.asked(content, 2);
      process.kill(holdfast.pid, 'SIGCONT');
      for (const answer of await Promise.all(answers)) expectWhole(answer);
      await holdfast.logged(({ msg, outcome }) => msg === 'run ended' && outcome === 'superseded');
      expect(deployment.requests(content)).toHaveLength(2);
    },
  );
});
