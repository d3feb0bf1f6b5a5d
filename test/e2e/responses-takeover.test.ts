import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { aiSdkResponses } from './clients/ai-sdk-responses.ts';
import type { ChatClient } from './clients/chat-client.ts';
import { openaiResponses, openaiResponsesHelper } from './clients/openai-responses.ts';
import { recoveredOf } from './cut-thoughts.ts';
import { Deployment, modelOf } from './deployment.ts';
import { RESPONSE_SITUATIONS } from './response-situations.ts';
import type { Situation } from './situations.ts';

const LEASE_MS = 1500;
const STORED_MS = 60_000;
const CONNECTIONS = [openaiResponses, openaiResponsesHelper, aiSdkResponses];
const CASES = CONNECTIONS.flatMap((connect) =>
  RESPONSE_SITUATIONS.map((situation) => ({
    connect,
    situation,
    // Providers count a prompt's tokens by its length, which must be the same in every case.
    question: `${connect.name}: ${situation.name} `.padEnd(160, '.'),
  })),
);

/** The client has seen nothing of calls that are held. */
const isSeen = ({ parts: [first] }: Situation): boolean =>
  first !== undefined && !('tool' in first || 'tools' in first);

/** Every client asks the first replica, which is killed in the middle of every answer, and then the second one. */
describe('an application that asks for its response again after its replica was killed', () => {
  let deployment: Deployment;
  let failures: readonly unknown[];

  const ask = (client: ChatClient, { tools }: Situation, content: string) =>
    client.ask({ model: modelOf('h1'), content, tools });

  beforeAll(async () => {
    deployment = await Deployment.start({ replicas: 2, checkpoint: { lease_ms: LEASE_MS } });
    const { holdfast } = deployment;
    const asked = CASES.map(({ connect, situation, question }) => {
      const { parts, at } = situation;
      deployment.plan(question, { parts, faults: [{ kind: 'silence', at }] });
      return ask(connect(holdfast.url), situation, question).then(
        () => undefined,
        (error: unknown) => error,
      );
    });
    const seen = CASES.filter(({ situation }) => isSeen(situation)).length;
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
    failures = await Promise.all(asked);
  }, 2 * STORED_MS);
  afterAll(() => deployment.close());

  const cases = CASES.map((each, index) => ({ name: each.question.replace(/ \.*$/, ''), index, ...each }));
  test.each(cases)('$name', async ({ index, connect, situation, question }) => {
    expect(failures[index]).toBeInstanceOf(Error);
    const client = connect(deployment.other.url);
    const answer = await ask(client, situation, question);
    const uncut = `uncut: ${question}`.slice(0, question.length);
    deployment.plan(uncut, { parts: situation.parts });
    expect(answer).toEqual(recoveredOf(client, await ask(client, situation, uncut), answer));
    expect(deployment.requests(question)).toHaveLength(2);
  });
});
