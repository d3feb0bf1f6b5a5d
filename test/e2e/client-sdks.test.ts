import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { chunk, DONE, words } from '../client/answers.ts';
import { cut, Fleet, refuse, type Step, stall, whole } from '../client/fleet.ts';
import { deltasOf } from '../provider/deltas.ts';
import type { Part } from '../provider/script.ts';
import { PROVIDER_WIRES } from '../provider/wires/registry.ts';
import { aiSdkCompatible, aiSdkOpenai } from './clients/ai-sdk.ts';
import { aiSdkAnthropic } from './clients/ai-sdk-anthropic.ts';
import { aiSdkResponses } from './clients/ai-sdk-responses.ts';
import { anthropicEvents, anthropicHelper } from './clients/anthropic.ts';
import type { ChatClient, Question } from './clients/chat-client.ts';
import { langchain } from './clients/langchain.ts';
import { langchainAnthropic } from './clients/langchain-anthropic.ts';
import { langchainResponses } from './clients/langchain-responses.ts';
import { openaiChunks, openaiCompletions, openaiHelper } from './clients/openai.ts';
import { openaiResponses, openaiResponsesHelper } from './clients/openai-responses.ts';
import { callTo, TIDES } from './situations.ts';

const CUTS = 8;
const WORDS = words(80);
const CALL = {
  id: 'call_brest',
  type: 'function',
  function: { name: 'tides', arguments: '{"port":"Brest","days":3}' },
};
const USAGE = { prompt_tokens: 5, completion_tokens: 40, total_tokens: 45 };
const CHAT = [
  chunk({ role: 'assistant', content: '' }),
  ...WORDS.map((content) => chunk({ content })),
  chunk({ tool_calls: [{ index: 0, ...CALL }] }),
  chunk({}, { finish_reason: 'tool_calls' }),
  JSON.stringify({ ...JSON.parse(chunk({})), choices: [], usage: USAGE }),
  DONE,
];
/** The payloads with which a provider says the same on another wire. */
function eventsOn(wire: 'completions' | 'messages' | 'responses'): string[] {
  const call: Part[] = wire === 'completions' ? [] : [{ tool: callTo('call_brest', 'Brest') }];
  const deltas = deltasOf([{ text: WORDS.join('') }, ...call], {});
  const said = { deltas, finish: call.length > 0 ? 'tool_calls' : 'stop' };
  const envelope = { id: 'answer_1', model: 'm', created: 1, wire };
  const { events } = PROVIDER_WIRES[wire].events(said, envelope, USAGE, 'final');
  return events.map((event) => /^data: (.*)$/m.exec(event)?.[1] ?? '');
}
const COMPLETION = eventsOn('completions');
const MESSAGE = eventsOn('messages');
const RESPONSE = eventsOn('responses');
const QUESTION: Question = { model: 'm', content: 'Tides?', tools: [TIDES] };

/** Sends some events and breaks the connection within the next one, at a different byte each time. */
const breaks = (how: 'reset' | 'eof'): readonly Step[] =>
  Array.from({ length: CUTS }, (_, index) => cut(700 + 37 * index, how));

type Connect = (url: string, fetch: typeof globalThis.fetch) => ChatClient;
const CLIENTS: readonly [name: string, connect: Connect, events: readonly string[]][] = [
  ['openai, chunk by chunk', openaiChunks, CHAT],
  ['openai, .stream()', openaiHelper, CHAT],
  ['ai with @ai-sdk/openai', aiSdkOpenai, CHAT],
  ['ai with @ai-sdk/openai-compatible', aiSdkCompatible, CHAT],
  ['@langchain/openai', langchain, CHAT],
  ['openai, completions', openaiCompletions, COMPLETION],
  ['anthropic, event by event', anthropicEvents, MESSAGE],
  ['anthropic, .stream()', anthropicHelper, MESSAGE],
  ['ai with @ai-sdk/anthropic', aiSdkAnthropic, MESSAGE],
  ['@langchain/anthropic', langchainAnthropic, MESSAGE],
  ['openai, responses.create()', openaiResponses, RESPONSE],
  ['openai, responses.stream()', openaiResponsesHelper, RESPONSE],
  ['ai with @ai-sdk/openai, responses', aiSdkResponses, RESPONSE],
  ['@langchain/openai, responses', langchainResponses, RESPONSE],
];

describe.each(CLIENTS)('%s', (_, connect, events) => {
  let fleet: Fleet;
  let client: ChatClient;
  const complaints: unknown[] = [];

  beforeAll(async () => {
    for (const method of ['warn', 'error'] as const) {
      vi.spyOn(console, method).mockImplementation((...said) => complaints.push(said));
    }
    fleet = await Fleet.open(events);
    const fetch = resumable({ endpoints: fleet.urls, backoffMs: 1, backoffMaxMs: 4 });
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
    const calls = events === COMPLETION ? [] : [{ id: 'call_brest', name: 'tides' }];
    expect(answer.toolCalls).toMatchObject(calls);
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
    await expect(ask(cut(1500, 'eof'), refuse(401, 'unauthorised'))).rejects.toThrow(/./);
    expect(fleet.asked).toHaveLength(2);
  });

  test('does not end a run that has ended', async () => {
    await ask(whole);
    await client.ask(QUESTION);
    expect(fleet.asked.map(({ method }) => method)).toEqual(['POST', 'POST']);
  });
});

test('leaving the loop over the chunks ends the run', async () => {
  const fleet = await Fleet.start(CHAT);
  fleet.script(stall(1500));
  const client = new OpenAI({ baseURL: fleet.base, apiKey: 'client-key', fetch: resumable() });
  const messages = [{ role: 'user' as const, content: 'Tides?' }];
  for await (const _ of await client.chat.completions.create({ model: 'm', messages, stream: true })) break;
  await fleet.requested(2);
  expect(fleet.asked[1]).toMatchObject({ method: 'DELETE', headers: { authorization: 'Bearer client-key' } });
});

test('leaving the loop over the events of a message ends the run', async () => {
  const fleet = await Fleet.start(MESSAGE);
  fleet.script(stall(1500));
  const client = new Anthropic({ baseURL: fleet.urls[0] ?? '', apiKey: 'client-key', fetch: resumable() });
  const messages = [{ role: 'user' as const, content: 'Tides?' }];
  const request = { model: 'm', max_tokens: 100, messages, stream: true as const };
  for await (const _ of await client.messages.create(request)) break;
  await fleet.requested(2);
  expect(fleet.asked[1]).toMatchObject({ method: 'DELETE', headers: { authorization: 'Bearer client-key' } });
});
