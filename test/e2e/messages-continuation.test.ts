import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readMessages } from '../simulation/messages-reading.ts';
import { API_KEY } from './clients/chat-client.ts';
import { Deployment, modelOf } from './deployment.ts';
import { afterDeltas } from './message-situations.ts';
import { callTo, TIDES } from './situations.ts';

const TEXT = {
  text: 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.',
};
const REASONING = { reasoning: 'They ask about the sea.' };
const CLAUDE_4_5 = 'claude-sonnet-4-5';
const KEY = 'configured-key';
/** The SDK's API version, whichever it is. */
const VERSION = expect.stringMatching(/^\d{4}-\d\d-\d\d$/) as string;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({ replicas: 2, apiKey: KEY });
});
afterAll(() => deployment.close());

const connect = (headers: Record<string, string> = {}) =>
  new Anthropic({
    baseURL: deployment.holdfast.url.replace(/\/v1$/, ''),
    apiKey: API_KEY,
    maxRetries: 0,
    defaultHeaders: headers,
  });
const requestOf = (model: string, content: string, more: object = {}) => ({
  model: modelOf(model),
  max_tokens: 4096,
  messages: [{ role: 'user' as const, content }],
  ...more,
});

const secondRequest = (question: string) =>
  deployment.requests(question)[1]?.body as Anthropic.MessageCreateParams;

describe('how the rest is asked for', () => {
  const parts = [REASONING, TEXT];
  const fault = { kind: 'reset', at: afterDeltas(parts, 'text_delta', 9) } as const;
  const thinking = { type: 'enabled', budget_tokens: 2048 } as const;

  test('a model that continues from a prefix is given one, without thinking', async () => {
    const question = 'prefill';
    deployment.plan(question, { parts, faults: [fault] });
    const message = await connect()
      .messages.stream(requestOf(CLAUDE_4_5, question, { thinking }))
      .finalMessage();
    expect(message.content).toMatchObject([{ type: 'thinking' }, { type: 'text', text: TEXT.text }]);
    const second = secondRequest(question);
    expect(second).toMatchObject({ thinking: { type: 'disabled' }, max_tokens: 4096 - 9 });
    expect(second.messages.slice(1)).toEqual([
      { role: 'assistant', content: 'The tide comes in twice a day, and what' },
    ]);
  });

  test('any other is asked by its user, and does not think again', async () => {
    const question = 'nudge';
    deployment.plan(question, { parts, faults: [fault] });
    const message = await connect()
      .messages.stream(requestOf('h1', question, { thinking }))
      .finalMessage();
    const second = secondRequest(question);
    expect(second).toMatchObject({ thinking: { type: 'disabled' } });
    expect(message.content[0]).toMatchObject({ type: 'thinking' });
    expect(second.messages.slice(1)).toEqual([
      { role: 'assistant', content: 'The tide comes in twice a day, and what' },
      { role: 'user', content: expect.stringContaining('cut off') as string },
    ]);
  });

  test('every request has the headers of the client, and the key of the upstream', async () => {
    const question = 'headers';
    deployment.plan(question, { parts, faults: [fault] });
    const headers = { 'anthropic-beta': 'one,two' };
    await connect(headers).messages.stream(requestOf('vllm', question)).finalMessage();
    const sent = deployment.requests(question).map((request) => request.headers);
    expect(sent).toHaveLength(2);
    for (const each of sent) {
      expect(each).toMatchObject({ ...headers, 'anthropic-version': VERSION, 'x-api-key': KEY });
      expect(each).not.toHaveProperty('authorization');
    }
  });
});

test.each(['chunks', 'comments'])(
  'a client that asks for %s has the same message in the end',
  async (events) => {
    const parts = [REASONING, TEXT, { tool: callTo('call_brest', 'Brest') }];
    const ask = async (question: string, at?: number) => {
      const faults =
        at === undefined ? [] : [{ kind: 'reset', at: afterDeltas(parts, 'text_delta', at) } as const];
      deployment.plan(question.padEnd(40, '.'), { parts, faults });
      const tools = [{ name: TIDES.name, input_schema: { ...TIDES.parameters, type: 'object' as const } }];
      const request = requestOf('h1', question.padEnd(40, '.'), { tools });
      const { id: _, ...message } = await connect({ 'holdfast-events': events })
        .messages.stream(request)
        .finalMessage();
      return JSON.parse(JSON.stringify(message)) as unknown;
    };
    expect(await ask(`${events}: cut`, 12)).toEqual(await ask(`${events}: uncut`));
  },
);

test('a message continues at another replica when its own is killed', async () => {
  const words = Array.from({ length: 150 }, (_, index) => `w${index} 🌊`).join(' ');
  const parts = [REASONING, { text: words }, { tool: callTo('call_brest', 'Brest') }];
  deployment.plan('killed', { parts, delay_ms: 8 });
  const headers = {
    'content-type': 'application/json',
    'x-api-key': API_KEY,
    'anthropic-version': '2023-06-01',
    'holdfast-resume': '1',
  };
  const response = await fetch(`${deployment.holdfast.url}/messages`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      ...requestOf('h1', 'killed'),
      stream: true,
      tools: [{ name: TIDES.name, input_schema: TIDES.parameters }],
    }),
  });
  const run = response.headers.get('holdfast-run-id');
  let body = '';
  try {
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      body += piece;
      if (eventsIn(body).length > 40) await deployment.holdfast.kill('SIGKILL');
    }
  } catch {
    // The connection broke when its process died.
  }
  const had = eventsIn(body);
  const tail = had.map((event) => /^data: (.*)$/m.exec(event)?.[1]);
  const rest = await fetch(`${deployment.other.url.replace(/\/v1$/, '')}/holdfast/v1/runs/${run}/resume`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ cursor: had.length, tail }),
  });
  const whole = (had.join('') + (await rest.text())).replaceAll(/^id: .*\n/gm, '');
  expect(readMessages(whole)).toMatchObject({
    violations: [],
    text: words,
    reasoning: REASONING.reasoning,
    toolCalls: [callTo('call_brest', 'Brest')],
    finish: 'tool_calls',
    done: true,
  });
});

/** The complete events in a body. */
const eventsIn = (body: string): string[] =>
  body.split(/(?<=\n\n)/).filter((event) => event.endsWith('\n\n'));
