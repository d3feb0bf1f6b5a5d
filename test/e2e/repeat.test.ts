import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { completionRequest } from '../provider/request.ts';
import { aiSdkCompatible, aiSdkOpenai } from './clients/ai-sdk.ts';
import type { Answer, ChatClient } from './clients/chat-client.ts';
import { langchain } from './clients/langchain.ts';
import { openaiChunks, openaiHelper } from './clients/openai.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { Deployment, modelOf } from './deployment.ts';
import { pythonEnvironment } from './python/environment.ts';
import { SITUATIONS, type Situation } from './situations.ts';

const LEASE_MS = 1500;
const STORED_MS = 60_000;
const MODEL = modelOf('vllm');
/** Providers count a prompt's tokens by its length, which must be the same in every case. */
const QUESTION_CHARACTERS = 160;

vi.setConfig({ maxConcurrency: 16 });

const python = await pythonEnvironment();
const CONNECTIONS: readonly ((url: string) => ChatClient)[] = [
  openaiChunks,
  openaiHelper,
  aiSdkOpenai,
  aiSdkCompatible,
  langchain,
  ...('missing' in python
    ? []
    : (['chunks', 'helper'] as const).map(
        (manner) => (url: string) => new OpenaiPython(python.interpreter, manner, url),
      )),
];

/** A run is continued if the client has seen part of it; of held calls, it has seen nothing. */
const isSeen = ({ parts: [first] }: Situation): boolean =>
  first !== undefined && !('tool' in first || 'tools' in first);
const isSaid = ({ name }: Situation): boolean => !name.endsWith('cut in the reasoning');

interface Case {
  readonly situation: Situation;
  readonly client: ChatClient;
  readonly repeated: ChatClient;
  readonly failure: Promise<unknown>;
}

/** Every client asks the first replica, which is killed in the middle of every answer, and then the second one. */
describe('an application that repeats its request after its replica was killed', () => {
  let deployment: Deployment;
  let cases: readonly Case[];

  const contentOf = ({ name }: Situation, client: ChatClient, time: string) =>
    `${client.name}: ${name}: ${time} `.padEnd(QUESTION_CHARACTERS, '.');
  const ask = (client: ChatClient, { tools }: Situation, content: string): Promise<Answer> =>
    client.ask({ model: MODEL, content, tools });

  beforeAll(async () => {
    deployment = await Deployment.start({ replicas: 2, checkpoint: { lease_ms: LEASE_MS } });
    const { holdfast, other } = deployment;
    cases = CONNECTIONS.map((connect) => [connect(holdfast.url), connect(other.url)] as const).flatMap(
      ([client, repeated]) =>
        SITUATIONS.map((situation) => {
          const content = contentOf(situation, client, 'killed');
          const { parts, at } = situation;
          deployment.plan(content, { parts, faults: [{ kind: 'silence', at }], prefill: 'vllm' });
          const failure = ask(client, situation, content).then(
            () => undefined,
            (error: unknown) => error,
          );
          return { situation, client, repeated, failure };
        }),
    );
    const seen = cases.filter(({ situation }) => isSeen(situation)).length;
    await vi.waitFor(
      async () => {
        const appends = (await holdfast.metrics()).get(
          'holdfast_checkpoint_append_seconds_count{store="file"}',
        );
        expect(appends).toBeGreaterThanOrEqual(seen);
      },
      { timeout: STORED_MS },
    );
    await holdfast.kill('SIGKILL');
    await Promise.all(cases.map(({ failure }) => failure));
    await Promise.all(cases.map(({ client }) => client.close?.()));
  }, 2 * STORED_MS);
  afterAll(async () => {
    await Promise.all(cases.map(({ repeated }) => repeated.close?.()));
    await deployment.close();
  });

  const clients = CONNECTIONS.map((_, client) => ({ client }));
  const situations = SITUATIONS.map(({ name }, situation) => ({ name, situation }));
  describe.each(clients)('client $client', ({ client }) => {
    test.concurrent.each(situations)('$name', async ({ situation: index }) => {
      const found = cases[client * SITUATIONS.length + index];
      if (!found) throw new Error('there is no such case');
      const { situation, repeated, failure } = found;
      expect(await failure).toBeDefined();
      const content = contentOf(situation, repeated, 'killed');
      const answer = await ask(repeated, situation, content);

      const uncut = contentOf(situation, repeated, 'uncut');
      deployment.plan(uncut, { parts: situation.parts });
      expect(answer).toEqual(await ask(repeated, situation, uncut));

      const requests = deployment.requests(content).map(({ body }) => completionRequest(body)?.messages);
      expect(requests).toHaveLength(2);
      const rest = requests[1]?.at(-1)?.role;
      expect(rest).toBe(isSeen(situation) && isSaid(situation) ? 'assistant' : 'user');
    });
  });
});
