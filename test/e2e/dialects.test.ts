import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { needs } from '../needs.ts';
import { mannersOf } from '../proxy/wires/dialects/fixture-plan.ts';
import { FIXTURES } from '../proxy/wires/dialects/fixture-registry.ts';
import type { Fixture } from '../proxy/wires/dialects/fixtures/fixture.ts';
import { aiSdkCompatible } from './clients/ai-sdk.ts';
import type { Answer, ChatClient } from './clients/chat-client.ts';
import { langchain } from './clients/langchain.ts';
import { openaiChunks, openaiHelper } from './clients/openai.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { modelOf } from './deployment.ts';
import { DialectDeployment } from './dialect-deployment.ts';
import {
  DIALECT_TROUBLES,
  type DialectSituation,
  type DialectTrouble,
  situationsOf,
} from './dialect-troubles.ts';
import { pythonEnvironment } from './python/environment.ts';
import { callsOf, textOf } from './situations.ts';
import { expectNoWarnings } from './warnings.ts';

vi.setConfig({ maxConcurrency: 16 });

/** Providers count a prompt's tokens by its length, which must be the same in every case. */
const QUESTION_CHARACTERS = 160;
const ALL = Object.entries(FIXTURES).map(([name, fixture]) => ({ name, fixture }));

const python = await pythonEnvironment();
const CLIENTS: readonly (readonly [name: string, connect: (url: string) => ChatClient])[] = [
  ['openai, chunk by chunk', openaiChunks],
  ['openai, .stream()', openaiHelper],
  ['ai with @ai-sdk/openai-compatible', aiSdkCompatible],
  ['@langchain/openai', langchain],
  ...('missing' in python
    ? []
    : (['chunks', 'helper'] as const).map(
        (manner) =>
          [
            `openai for Python, ${manner}`,
            (url: string) => new OpenaiPython(python.interpreter, manner, url),
          ] as const,
      )),
];
if ('missing' in python) test('openai for Python', needs(python), () => {});

expectNoWarnings();
let deployment: DialectDeployment;
beforeAll(async () => {
  deployment = await DialectDeployment.start();
});
afterAll(() => deployment.close());

describe.each(CLIENTS)('%s', (client_name, connect) => {
  let client: ChatClient;
  beforeAll(() => {
    client = connect(deployment.url);
  });
  afterAll(() => client.close?.());

  async function ask(fixture: Fixture, { name, parts, tools }: DialectSituation, trouble?: DialectTrouble) {
    const words = `${client_name}: ${fixture.dialect}: ${name}: ${trouble?.name ?? 'uncut'} `;
    const content = words.padEnd(QUESTION_CHARACTERS, '.');
    const faults = trouble ? [trouble.fault(fixture, parts)] : [];
    deployment.plan(content, { ...mannersOf(fixture), parts, faults });
    const { dialect, request: parameters = {} } = fixture;
    const answer = await client.ask({ model: modelOf(dialect), content, tools, parameters });
    return { answer, requests: deployment.requests(content) };
  }

  test.concurrent.each(ALL)(
    '$name: whatever happens, the answer is that of an uncut run',
    async ({ fixture }) => {
      for (const situation of situationsOf(fixture)) {
        const uncut = await ask(fixture, situation);
        expectAnswer(uncut.answer, fixture, situation);
        expect(uncut.requests).toBe(1);
        const troubles = DIALECT_TROUBLES.filter((trouble) => trouble.situation === situation.name);
        const answers = await Promise.all(
          troubles.map(async (trouble) => ({
            trouble: trouble.name,
            ...(await ask(fixture, situation, trouble)),
          })),
        );
        // Clients can't read this provider's own usage report, but they can read Holdfast's after a recovery.
        const answer = fixture.reportsInChoice
          ? { ...uncut.answer, usage: expect.anything() as unknown }
          : uncut.answer;
        expect(answers).toEqual(troubles.map(({ name }) => ({ trouble: name, answer, requests: 2 })));
      }
    },
  );
});

function expectAnswer(
  { text, toolCalls, finish, usage }: Answer,
  fixture: Fixture,
  { parts }: DialectSituation,
) {
  const calls = callsOf({ parts }).map(({ id, name, arguments: json }) => ({
    id,
    name,
    arguments: JSON.parse(json) as unknown,
  }));
  expect(text).toBe(textOf({ parts }));
  expect(toolCalls).toEqual(calls);
  expect(finish).toMatch(calls.length > 0 && fixture.finish === undefined ? /^tool[-_]calls$/ : 'stop');
  if (!fixture.reportsInChoice) expect(usage).toBeDefined();
}
