import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { chunk, DONE, words } from '../client/answers.ts';
import { cut, Fleet, refuse, type Step, stall, whole } from '../client/fleet.ts';
import { aiSdkCompatible, aiSdkOpenai } from './clients/ai-sdk.ts';
import type { ChatClient, Question } from './clients/chat-client.ts';
import { langchain } from './clients/langchain.ts';
import { openaiChunks, openaiHelper } from './clients/openai.ts';
import { TIDES } from './situations.ts';

const CUTS = 8;
const WORDS = words(40);
const CALL = {
  id: 'call_brest',
  type: 'function',
  function: { name: 'tides', arguments: '{"port":"Brest","days":3}' },
};
const USAGE = { prompt_tokens: 5, completion_tokens: 40, total_tokens: 45 };
const EVENTS = [
  chunk({ role: 'assistant', content: '' }),
  ...WORDS.map((content) => chunk({ content })),
  chunk({ tool_calls: [{ index: 0, ...CALL }] }),
  chunk({}, { finish_reason: 'tool_calls' }),
  JSON.stringify({ ...JSON.parse(chunk({})), choices: [], usage: USAGE }),
  DONE,
];
const QUESTION: Question = { model: 'm', content: 'Tides?', tools: [TIDES] };

/** Some events, and then the connection breaks: within the next event, each time in another place of it. */
const breaks = (how: 'reset' | 'eof'): readonly Step[] =>
  Array.from({ length: CUTS }, (_, index) => cut(700 + 37 * index, how));

const CLIENTS: readonly [string, (url: string, fetch: typeof globalThis.fetch) => ChatClient][] = [
  ['openai, chunk by chunk', openaiChunks],
  ['openai, .stream()', openaiHelper],
  ['ai with @ai-sdk/openai', aiSdkOpenai],
  ['ai with @ai-sdk/openai-compatible', aiSdkCompatible],
  ['@langchain/openai', langchain],
];

describe.each(CLIENTS)('%s', (_, connect) => {
  let fleet: Fleet;
  let client: ChatClient;
  const complaints: unknown[] = [];

  beforeAll(async () => {
    for (const method of ['warn', 'error'] as const) {
      vi.spyOn(console, method).mockImplementation((...said) => complaints.push(said));
    }
    fleet = await Fleet.open(EVENTS);
    const fetch = resumable({ endpoints: fleet.urls, backoff_ms: 1, backoff_max_ms: 4 });
    client = connect(fleet.base, fetch);
  });
  afterAll(() => {
    vi.restoreAllMocks();
    fleet.close();
    expect(complaints).toEqual([]);
  });

  const ask = async (...steps: readonly Step[]) => {
    fleet.asked.length = 0;
    fleet.script(...steps);
    return client.ask(QUESTION);
  };

  test('does not notice that the connection was reset eight times', async () => {
    const answer = await ask(...breaks('reset'));
    expect(answer.text).toBe(WORDS.join(''));
    expect(answer).toEqual(await ask());
    expect(answer.toolCalls).toMatchObject([{ id: 'call_brest', name: 'tides' }]);
  });

  test('asks for no more than was lost', async () => {
    await ask(...breaks('eof'));
    expect(fleet.asked).toHaveLength(CUTS + 1);
    expect(fleet.asked.map(({ replica }) => replica)).toEqual([0, 1, 0, 1, 0, 1, 0, 1, 0]);
    const cursors = fleet.asked.slice(1).map(({ body }) => (body as { cursor: number }).cursor);
    expect(cursors).toEqual(cursors.toSorted((one, other) => one - other));
    expect(new Set(cursors).size).toBe(CUTS);
  });

  test('is told when the rest cannot be had', async () => {
    await expect(ask(cut(1500, 'eof'), refuse(404, 'run_not_found'))).rejects.toThrow(/./);
    expect(fleet.asked).toHaveLength(2);
  });

  test('does not end a run that has ended', async () => {
    await ask(whole);
    await client.ask(QUESTION);
    expect(fleet.asked.map(({ method }) => method)).toEqual(['POST', 'POST']);
  });
});

test('leaving the loop over the chunks ends the run', async () => {
  const fleet = await Fleet.start(EVENTS);
  fleet.script(stall(1500));
  const client = new OpenAI({ baseURL: fleet.base, apiKey: 'client-key', fetch: resumable() });
  const messages = [{ role: 'user' as const, content: 'Tides?' }];
  for await (const _ of await client.chat.completions.create({ model: 'm', messages, stream: true })) break;
  await fleet.requested(2);
  expect(fleet.asked[1]).toMatchObject({ method: 'DELETE', headers: { authorization: 'Bearer client-key' } });
});
