import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import type { Part } from '../provider/script.ts';
import { anthropicEvents, anthropicHelper } from './clients/anthropic.ts';
import { AnthropicPython } from './clients/anthropic-python.ts';
import { API_KEY, type ChatClient } from './clients/chat-client.ts';
import { Deployment, modelOf } from './deployment.ts';
import { afterDeltas } from './message-situations.ts';
import { pythonEnvironment } from './python/environment.ts';
import { callTo, TIDES } from './situations.ts';
import { TROUBLES } from './troubles.ts';

vi.setConfig({ maxConcurrency: 16 });

const MAX_ATTEMPTS = 2;
/** More than are ever made. */
const ALWAYS = MAX_ATTEMPTS + 2;
const TEXT = {
  text: 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.',
};
const REASONING = { reasoning: 'They ask about the sea.' };
/** After the beginnings of the message and of the block, a ping, and two deltas. */
const IN_FIRST_BLOCK = { event: 5 } as const;
const [BREST, LORIENT] = [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')];

type Connect = (url: string) => ChatClient;
const python = await pythonEnvironment();
const CLIENTS: readonly (readonly [name: string, connect: Connect])[] = [
  ['anthropic, event by event', anthropicEvents],
  ['anthropic, .stream()', anthropicHelper],
  ...('missing' in python
    ? []
    : ([
        ['anthropic for Python, events', (url) => new AnthropicPython(python.interpreter, 'events', url)],
        ['anthropic for Python, helper', (url) => new AnthropicPython(python.interpreter, 'helper', url)],
      ] satisfies [string, Connect][])),
];
if ('missing' in python) test.skip(`anthropic for Python (skipped: ${python.missing})`);

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({ recovery: { max_attempts: MAX_ATTEMPTS } });
});
afterAll(() => deployment.close());

const planned = (question: string, parts: readonly Part[], faults: readonly (Fault | null)[]) => {
  deployment.plan(question, { parts, faults });
  return question;
};

describe.concurrent.each(CLIENTS)('%s', (name, connect) => {
  let client: ChatClient;
  beforeAll(() => {
    client = connect(deployment.holdfast.url);
  });
  afterAll(() => client.close?.());

  const lost = ['reset', 'clean_eof', 'done_without_finish', 'error_anthropic', 'finish_abort', 'silence'];
  const answers: [string, Part[]][] = [
    ['text', [TEXT]],
    ['reasoning and text', [REASONING, TEXT]],
    ['text and a tool call', [TEXT, { tool: BREST }]],
    ['a tool call', [{ tool: BREST }]],
  ];
  const troubles = TROUBLES.filter((trouble) => lost.includes(trouble.name));
  const cases = answers.flatMap(([said, parts]) => troubles.map((trouble) => ({ said, parts, trouble })));

  test.each(cases)('$said, lost for good by $trouble.name, is an error', async ({ said, parts, trouble }) => {
    const faults = Array.from({ length: ALWAYS }, () => trouble.fault(IN_FIRST_BLOCK));
    const content = planned(`${name}: ${said}: ${trouble.name}`, parts, faults);
    const asked = client.ask({ model: modelOf(trouble.upstream), content, tools: [TIDES] });
    await expect(asked).rejects.toThrow(/interrupted|not able to answer|did not answer/);
    expect(deployment.requests(content)).toHaveLength(MAX_ATTEMPTS);
  });

  test('a provider that only refuses is an error', async () => {
    const faults = Array.from({ length: ALWAYS }, (): Fault => ({ kind: 'status', status: 503 }));
    const content = planned(`${name}: refused`, [TEXT], faults);
    const asked = client.ask({ model: modelOf('h1'), content, tools: [] });
    await expect(asked).rejects.toThrow('The scripted status is 503.');
    expect(deployment.requests(content)).toHaveLength(MAX_ATTEMPTS);
  });

  test('so is a provider that nobody reaches', async () => {
    const asked = client.ask({ model: modelOf('unknown'), content: `${name}: nowhere`, tools: [] });
    await expect(asked).rejects.toThrow("No route serves the model 'unknown-model'");
  });

  test('a settled tool call arrives, although the one after it was cut', async () => {
    const parts = [{ tool: BREST }, { tool: LORIENT }];
    const inSecond = afterDeltas(parts, 'input_json_delta', 8);
    const content = planned(`${name}: settled`, parts, [{ kind: 'reset', at: inSecond }]);
    const answer = await client.ask({ model: modelOf('h1'), content, tools: [TIDES] });
    expect(answer).toMatchObject({
      text: '',
      toolCalls: [{ id: BREST.id, name: BREST.name, arguments: JSON.parse(BREST.arguments) as unknown }],
      finish: 'tool_calls',
    });
    expect(deployment.requests(content)).toHaveLength(1);
  });
});

describe('on the wire', () => {
  const ask = (question: string, more: object = {}) =>
    fetch(`${deployment.holdfast.url}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': API_KEY },
      body: JSON.stringify({
        model: modelOf('h1'),
        max_tokens: 4096,
        stream: true,
        messages: [{ role: 'user', content: question }],
        ...more,
      }),
    });

  test('the error says what became of the run, and no end of the message comes with it', async () => {
    const at = afterDeltas([TEXT], 'text_delta', 5);
    const faults = Array.from({ length: ALWAYS }, (): Fault => ({ kind: 'error_anthropic', at }));
    const response = await ask(planned('wire: exhausted', [TEXT], faults));
    const body = await response.text();
    expect(body).not.toMatch(/message_delta|message_stop/);
    const run_id = response.headers.get('holdfast-run-id');
    const [, name, data = ''] = /event: (\w+)\ndata: (.*)\n\n$/.exec(body) ?? [];
    expect(name).toBe('error');
    expect(JSON.parse(data)).toMatchObject({
      type: 'error',
      error: {
        type: 'api_error',
        code: 'stream_interrupted',
        message: expect.stringMatching(/provider_5xx \(529\): Overloaded; gave up: attempts$/) as string,
        holdfast: {
          run_id,
          stream_id: expect.stringMatching(/^chatcmpl-\d+$/) as string,
          cause: 'provider_5xx',
          attempts: MAX_ATTEMPTS,
          retryable: true,
        },
      },
    });
  });

  test('an error of the provider before its stream is passed on as it came', async () => {
    const body = {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'max_tokens: too large' },
    };
    const response = await ask(planned('wire: refused', [TEXT], [{ kind: 'status', status: 400, body }]));
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual(body);
  });
});
