import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ResumableOptions, resumable } from '../../src/client/index.ts';
import { seedOr } from '../cases.ts';
import { callsOf, chunksOf, contentOf, finishOf } from '../provider/reading.ts';
import type { Plan } from '../provider/script.ts';
import { aiSdkCompatible, aiSdkOpenai } from './clients/ai-sdk.ts';
import type { ChatClient } from './clients/chat-client.ts';
import { langchain } from './clients/langchain.ts';
import { openaiChunks, openaiHelper } from './clients/openai.ts';
import { Deployment, type DeploymentOptions, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';
import { requestStored } from './stored-request.ts';

// Every test starts its own processes.
vi.setConfig({ testTimeout: 60_000 });

const SEED = seedOr(20_261_120);
const LEASE_MS = 600;
const CREDENTIAL = { authorization: 'Bearer client-key' };
const TOOLS = [{ type: 'function', function: TIDES }];
const TEXT = Array.from({ length: 150 }, (_, index) => `w${index} à 満潮 🌊`).join(' ');
const CALL = callTo('call_brest', 'Brest');
/** Sends an event about every 3 ms. */
const PLAN: Plan = { parts: [{ text: TEXT }, { tool: CALL }], delay_ms: 3 };

async function deploy(options: DeploymentOptions = {}): Promise<Deployment> {
  const deployment = await Deployment.start({
    replicas: 2,
    ...options,
    checkpoint: { lease_ms: LEASE_MS, ...options.checkpoint },
  });
  onTestFinished(() => deployment.close());
  return deployment;
}

const connect = ({ replicas }: Deployment, options: ResumableOptions = {}) =>
  resumable({ endpoints: replicas.map(({ url }) => url), maxRetries: 20, ...options });

/** Reads one answer through the client, and reports the body as it grows. */
async function read(
  fetch: typeof globalThis.fetch,
  deployment: Deployment,
  question: string,
  onProgress: (body: string) => void = () => {},
  { replica = deployment.holdfast, key }: { replica?: HoldfastProcess; key?: string } = {},
): Promise<{ readonly run: string; readonly body: string }> {
  const response = await fetch(`${replica.url}/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...CREDENTIAL,
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    body: JSON.stringify(streamRequest(modelOf('vllm'), question, { tools: TOOLS })),
  });
  let said = '';
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    said += text;
    onProgress(said);
  }
  return { run: response.headers.get('holdfast-run-id') ?? '', body: said };
}

function expectWhole({ body }: { readonly body: string }): void {
  const chunks = chunksOf(body);
  expect(chunks.filter(({ error }) => error !== undefined)).toEqual([]);
  const choices = chunks.filter(({ choices }) => choices.length > 0);
  expect(contentOf(choices)).toBe(TEXT);
  expect(callsOf(choices)).toEqual([CALL]);
  expect(finishOf(choices)).toEqual(['tool_calls']);
  expect(chunks.filter(({ usage }) => usage)).toHaveLength(1);
  expect(body.split('data: [DONE]\n\n')).toHaveLength(2);
  expect(body.endsWith('data: [DONE]\n\n')).toBe(true);
}

describe(`a replica that dies (seed ${SEED})`, () => {
  const MOMENTS = fc.sample(fc.noBias(fc.integer({ min: 0, max: 1500 })), { seed: SEED, numRuns: 3 });

  test.each(MOMENTS)('after %i ms: every client has the whole answer', async (after_ms) => {
    const deployment = await deploy();
    const fetch = connect(deployment);
    const questions = Array.from({ length: 8 }, (_, index) => `killed after ${after_ms}: ${index}`);
    for (const question of questions) deployment.plan(question, PLAN);
    const reading = questions.map((question) => read(fetch, deployment, question));
    await Promise.all(questions.map((question) => deployment.asked(question)));
    await setTimeout(after_ms);
    await deployment.holdfast.kill('SIGKILL');
    for (const answer of await Promise.all(reading)) expectWhole(answer);
  });

  test('and the next, and the one after that', async () => {
    const deployment = await deploy({ replicas: 4 });
    const question = 'killed three times';
    deployment.plan(question, PLAN);
    const killed: Promise<void>[] = [];
    const answer = await read(connect(deployment), deployment, question, (said) => {
      const place = TEXT.length * (killed.length + 1) * 0.25;
      if (killed.length < 3 && contentOf(chunksOf(said)).length > place) {
        killed.push(deployment.replicas[killed.length]?.kill('SIGKILL') ?? Promise.reject());
      }
    });
    await Promise.all(killed);
    expect(killed).toHaveLength(3);
    expectWhole(answer);
  });

  test('in write_ahead mode', async () => {
    const deployment = await deploy({ checkpoint: { durability: 'write_ahead' } });
    const question = 'killed in write_ahead mode';
    deployment.plan(question, PLAN);
    let killed: Promise<void> | undefined;
    const answer = await read(connect(deployment), deployment, question, (said) => {
      if (said.includes('w70')) killed ??= deployment.holdfast.kill('SIGKILL');
    });
    await killed;
    expectWhole(answer);
  });
});

describe('a replica that is asked to go', () => {
  test('hands its runs over at once', async () => {
    const deployment = await deploy({ limits: { drain_ms: 1 }, checkpoint: { lease_ms: 60_000 } });
    const question = 'terminated';
    deployment.plan(question, PLAN);
    let killed: Promise<void> | undefined;
    const answer = await read(connect(deployment), deployment, question, (said) => {
      if (said.includes('w70')) killed ??= deployment.holdfast.kill('SIGTERM');
    });
    await killed;
    expectWhole(answer);
  });
});

describe('a replica that freezes', () => {
  test('is left when nothing comes for idle_ms, and does no harm when it wakes up', async () => {
    const deployment = await deploy();
    const question = 'frozen';
    deployment.plan(question, PLAN);
    const { pid } = deployment.holdfast;
    let isFrozen = false;
    const answer = await read(connect(deployment, { idle_ms: 1_000 }), deployment, question, (said) => {
      if (!isFrozen && said.includes('w70')) isFrozen = process.kill(pid, 'SIGSTOP');
    });
    process.kill(pid, 'SIGCONT');
    expectWhole(answer);
    // The frozen replica discovers the takeover.
    await deployment.holdfast.logged(({ msg }) => msg === 'run ended');
    // The client has the whole answer before the journal is sealed.
    await deployment.other.logged(({ msg }) => msg === 'run ended');
    const url = new URL(`/holdfast/v1/runs/${answer.run}`, deployment.other.url);
    const status = await (await globalThis.fetch(url, { headers: CREDENTIAL })).json();
    expect(status).toMatchObject({ status: 'complete', text: TEXT, takeovers: 1 });
  });

  test.each([
    ['continues at another one', 2],
    ['asks it again, and is told what the other one makes of the run', 1],
  ])('before its first byte, and wakes up too late: its client %s', async (_, endpoints) => {
    const deployment = await deploy();
    const { holdfast, other, store } = deployment;
    const question = `frozen before the first byte, ${endpoints}`;
    const key = 'one for both';
    deployment.plan(question, {
      ...PLAN,
      faults: [{ kind: 'silence', at: { before_headers: true }, for_ms: 5_000 }],
    });
    const urls = deployment.replicas.slice(0, endpoints).map(({ url }) => url);
    const first = read(connect(deployment, { endpoints: urls }), deployment, question, undefined, { key });
    await deployment.asked(question);
    await requestStored(store, question);
    process.kill(holdfast.pid, 'SIGSTOP');
    const second = read(globalThis.fetch, deployment, question, undefined, { key, replica: other });
    // The other replica has taken the run over.
    await deployment.asked(question, 2);
    process.kill(holdfast.pid, 'SIGCONT');
    for (const answer of await Promise.all([first, second])) expectWhole(answer);
    await holdfast.logged(({ msg, outcome }) => msg === 'run ended' && outcome === 'superseded');
    expect(deployment.requests(question)).toHaveLength(2);
  });
});

describe('SDKs do not notice that a replica died', () => {
  const CLIENTS: readonly [string, (url: string, fetch: typeof globalThis.fetch) => ChatClient][] = [
    ['openai, chunk by chunk', openaiChunks],
    ['openai, .stream()', openaiHelper],
    ['ai with @ai-sdk/openai', aiSdkOpenai],
    ['ai with @ai-sdk/openai-compatible', aiSdkCompatible],
    ['@langchain/openai', langchain],
  ];

  test('any of them', async () => {
    const deployment = await deploy();
    const fetch = connect(deployment);
    const clients = CLIENTS.map(([name, connectSdk]) => ({
      name: name.padEnd(40, '.'),
      client: connectSdk(deployment.holdfast.url, fetch),
    }));
    const ask = ({ name, client }: (typeof clients)[number], how: string, faults: Plan['faults'] = []) => {
      const content = `${name} ${how}`;
      deployment.plan(content, { ...PLAN, faults });
      return { content, answer: client.ask({ model: modelOf('vllm'), content, tools: [TIDES] }) };
    };
    const uncut = await Promise.all(clients.map((each) => ask(each, 'uncut').answer));
    // Keep every answer open until the replica is killed, however long the test takes.
    const cut = clients.map((each) => ask(each, 'cut..', [{ kind: 'silence', at: { event: 200 } }]));
    await deployment.underWay(...cut.map(({ content }) => content));
    await deployment.holdfast.kill('SIGKILL');
    for (const [index, { content, answer }] of cut.entries()) {
      expect(await answer, content).toEqual(uncut[index]);
      expect((await answer).text).toBe(TEXT);
      expect(deployment.requests(content)).toHaveLength(2);
    }
  });
});

describe('an abort ends the run at the provider, though it was resumable', () => {
  async function ask(question: string, plan: Plan) {
    // The replica itself would end the run only long after this test.
    const deployment = await deploy({ replicas: 1, resume: { detached_ms: 600_000 } });
    deployment.plan(question, plan);
    const controller = new AbortController();
    const answer = connect(deployment)(`${deployment.holdfast.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...CREDENTIAL },
      body: JSON.stringify(streamRequest(modelOf('vllm'), question)),
      signal: controller.signal,
    });
    const ended = async () => {
      await deployment.abandoned(question);
      const line = await deployment.holdfast.logged(({ msg }) => msg === 'run ended');
      expect(line.outcome).toBe('cancelled');
    };
    return { deployment, answer, leave: () => controller.abort(), ended };
  }

  test('that has begun', async () => {
    const { answer, leave, ended } = await ask('aborted', PLAN);
    await (await answer).body?.getReader().read();
    leave();
    await ended();
  });

  test('of which nothing is known yet', async () => {
    const question = 'aborted before the first byte';
    const silence = { kind: 'silence', at: { before_headers: true } } as const;
    const { deployment, answer, leave, ended } = await ask(question, { ...PLAN, faults: [silence] });
    await deployment.asked(question);
    leave();
    await expect(answer).rejects.toMatchObject({ name: 'AbortError' });
    await ended();
  });
});
