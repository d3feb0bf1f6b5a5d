import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { readMessages } from '../simulation/messages-reading.ts';
import { aiSdkAnthropic } from './clients/ai-sdk-anthropic.ts';
import { aiSdkResponses } from './clients/ai-sdk-responses.ts';
import { anthropicEvents, anthropicHelper, messageRequestOf } from './clients/anthropic.ts';
import { AnthropicPython, type MessagesManner } from './clients/anthropic-python.ts';
import { type Answer, API_KEY, type ChatClient } from './clients/chat-client.ts';
import { openaiCompletions } from './clients/openai.ts';
import { OpenaiPython, type PythonManner } from './clients/openai-python.ts';
import { openaiResponses, openaiResponsesHelper } from './clients/openai-responses.ts';
import { Deployment, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { pythonEnvironment } from './python/environment.ts';
import { callTo, TIDES } from './situations.ts';

const LEASE_MS = 1000;
/** Providers count a prompt's tokens by its length, which must be the same in every case. */
const QUESTION_CHARACTERS = 60;
const TEXT = Array.from({ length: 150 }, (_, index) => `w${index} à 満潮 🌊`).join(' ');
const CALL = { tool: callTo('call_brest', 'Brest') };
const TEST_MAX_MS = 120_000;
/** More events than it takes to say `w10 à`. */
const BEGINNING_EVENTS = 60;

const redis = await redisBinary();
const python = await pythonEnvironment();

interface Setup {
  readonly url: string;
  readonly endpoints: readonly string[];
  readonly fetch: typeof globalThis.fetch;
}
type Connect = (setup: Setup) => ChatClient;

const ofNode =
  (connect: (url: string, fetch: typeof globalThis.fetch) => ChatClient): Connect =>
  ({ url, fetch }) =>
    connect(url, fetch);
const openaiPython =
  (manner: PythonManner): Connect =>
  ({ url, endpoints }) =>
    new OpenaiPython(interpreter(), manner, url, { endpoints, max_retries: 20 });
const anthropicPython =
  (manner: MessagesManner): Connect =>
  ({ url, endpoints }) =>
    new AnthropicPython(interpreter(), manner, url, { endpoints, max_retries: 20 });

/** No SDK, but with the headers and the path of Anthropic's. */
const plainMessages: Connect = ({ url, fetch }) => ({
  name: 'fetch, messages',
  async ask(question) {
    const response = await fetch(`${url}/messages?beta=true`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': API_KEY },
      body: JSON.stringify({ ...messageRequestOf(question), stream: true }),
    });
    const { text, toolCalls, finish, usage, violations } = readMessages(await response.text());
    expect(violations).toEqual([]);
    return { text, toolCalls, finish, usage };
  },
});

const CLIENTS: readonly Connect[] = [
  plainMessages,
  ...[openaiCompletions, anthropicEvents, anthropicHelper, aiSdkAnthropic].map(ofNode),
  ...[openaiResponses, openaiResponsesHelper, aiSdkResponses].map(ofNode),
  ...('missing' in python
    ? []
    : [
        ...(['events', 'response_helper'] as const).map(openaiPython),
        ...(['events', 'helper'] as const).map(anthropicPython),
      ]),
];

const WHOLE: readonly [path: string, asking: (question: string) => object][] = [
  ['/chat/completions', (content) => ({ messages: [{ role: 'user', content }] })],
  ['/messages', (content) => ({ messages: [{ role: 'user', content }], max_tokens: 4096 })],
  ['/responses', (input) => ({ input })],
];

describe('SDKs do not notice, on any wire, that a replica died', needs(redis), () => {
  let server: RedisServer;
  let deployment: Deployment;
  let clients: readonly ChatClient[];

  beforeAll(async () => {
    if ('missing' in redis) return;
    server = await RedisServer.start({ binary: redis.path });
    const checkpoint = { store: server.url, lease_ms: LEASE_MS };
    const secret = 'the secret that both replicas share';
    deployment = await Deployment.start({ replicas: 2, secret, checkpoint });
    const endpoints = deployment.replicas.map(({ url }) => url);
    const fetch = resumable({ endpoints, maxRetries: 20 });
    clients = CLIENTS.map((connect) => connect({ url: deployment.holdfast.url, endpoints, fetch }));
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close?.()));
    await deployment.close();
    await server.stop();
  });

  /**
   * Asks through every client, and returns the answers in the order of the clients. `stopped`: the first attempt stalls
   * midway.
   */
  function askAll(name: string, stopped: boolean): { question: string; answer: Promise<Answer> }[] {
    return clients.map((client) => {
      const isText = client.name.includes('completions');
      const question = `${client.name}: ${name} `.padEnd(QUESTION_CHARACTERS, '.');
      deployment.plan(question, {
        parts: isText ? [{ text: TEXT }] : [{ text: TEXT }, CALL],
        delay_ms: 3,
        faults: stopped ? [{ kind: 'silence', at: { event: 200 } }] : [],
      });
      const tools = isText ? [] : [TIDES];
      return { question, answer: client.ask({ model: modelOf('h1'), content: question, tools }) };
    });
  }

  test(
    'that served them',
    async () => {
      const uncut = await Promise.all(askAll('uncut', false).map(({ answer }) => answer));
      const cut = askAll('cut', true);
      await deployment.underWay(...cut.map(({ question }) => question));
      await deployment.holdfast.kill('SIGKILL');
      for (const [index, { question, answer }] of cut.entries()) {
        expect(await answer, question).toEqual(uncut[index]);
        expect((await answer).text, question).toBe(TEXT);
        expect(deployment.requests(question), question).toHaveLength(2);
      }
    },
    TEST_MAX_MS,
  );

  test(
    'that was to give whole answers',
    async () => {
      const dying = await deployment.addReplica();
      const surviving = await deployment.addReplica();
      const fetch = resumable({ endpoints: [dying.url, surviving.url] });
      const asked = WHOLE.map(([path, asking]) => {
        const question = `a whole answer on ${path}`;
        const faults = [{ kind: 'silence', at: { event: 200 } }] as const;
        deployment.plan(question, { parts: [{ text: TEXT }], delay_ms: 3, faults });
        const answer = fetch(dying.url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
          body: JSON.stringify({ model: modelOf('h1'), ...asking(question) }),
        });
        return { question, answer };
      });
      await Promise.all(asked.map(({ question }) => deployment.asked(question)));
      await vi.waitFor(async () => expect(await storedRuns(surviving)).toHaveLength(asked.length), {
        timeout: TEST_MAX_MS,
      });
      await dying.kill('SIGKILL');
      for (const { question, answer } of asked) {
        expect(JSON.stringify(await (await answer).json())).toContain(JSON.stringify(TEXT));
        const [first, second, ...others] = deployment.requests(question);
        expect(others, question).toEqual([]);
        // The second request asks only for what is missing.
        expect(JSON.stringify(second?.body)).toContain('w10 à');
        expect(JSON.stringify(first?.body)).not.toContain('w10 à');
      }
    },
    TEST_MAX_MS,
  );
});

/** The running runs for which a replica finds the beginning of the answer in the store. */
async function storedRuns({ url }: HoldfastProcess): Promise<unknown[]> {
  const headers = { authorization: `Bearer ${API_KEY}` };
  const response = await globalThis.fetch(new URL('/holdfast/v1/runs', url), { headers });
  const { data } = (await response.json()) as { data: { status: string; cursor: number }[] };
  return data.filter(({ status, cursor }) => status === 'running' && cursor > BEGINNING_EVENTS);
}

function interpreter(): string {
  if ('missing' in python) throw new Error(python.missing);
  return python.interpreter;
}
