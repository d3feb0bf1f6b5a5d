import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import type { Part } from '../provider/script.ts';
import { readResponses } from '../simulation/responses-reading.ts';
import { aiSdkResponses } from './clients/ai-sdk-responses.ts';
import { API_KEY, type ChatClient } from './clients/chat-client.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { openaiResponses, openaiResponsesHelper, responsesTools } from './clients/openai-responses.ts';
import { Deployment, modelOf } from './deployment.ts';
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
const [BREST, LORIENT] = [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')];
/** After the response, the item and its part have begun: some words, or some of the arguments. */
const WITHIN = { event: 7 } as const;

type Connect = (url: string) => ChatClient;
const python = await pythonEnvironment();
const CLIENTS: readonly (readonly [name: string, connect: Connect])[] = [
  ['openai, responses.create()', openaiResponses],
  ['openai, responses.stream()', openaiResponsesHelper],
  ['ai with @ai-sdk/openai, responses', aiSdkResponses],
  ...('missing' in python
    ? []
    : ([
        [
          'openai for Python, responses.create()',
          (url) => new OpenaiPython(python.interpreter, 'events', url),
        ],
        [
          'openai for Python, responses.stream()',
          (url) => new OpenaiPython(python.interpreter, 'response_helper', url),
        ],
      ] satisfies [string, Connect][])),
];
if ('missing' in python) test.skip(`openai for Python (skipped: ${python.missing})`);

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

  const names = ['reset', 'clean_eof', 'done_without_finish', 'error_openai', 'error_openrouter', 'silence'];
  const lost = TROUBLES.filter((trouble) => names.includes(trouble.name));
  const answers: [string, Part[]][] = [
    ['text', [TEXT]],
    ['reasoning and text', [{ reasoning: 'Kelp.' }, TEXT]],
    ['text and a tool call', [TEXT, { tool: BREST }]],
    ['a tool call', [{ tool: BREST }]],
  ];
  const cases = answers.flatMap(([said, parts]) => lost.map((trouble) => ({ said, parts, trouble })));

  test.each(cases)('$said, lost for good by $trouble.name, is an error', async ({ said, parts, trouble }) => {
    const at = said === 'a tool call' ? { event: 4 } : WITHIN;
    const faults = Array.from({ length: ALWAYS }, () => trouble.fault(at));
    const content = planned(`${name}: ${said}: ${trouble.name}`, parts, faults);
    const asked = client.ask({ model: modelOf(trouble.upstream), content, tools: [TIDES] });
    await expect(asked).rejects.toThrow(/interrupted|not able to answer|did not answer/);
    const { length: attempts } = deployment.requests(content);
    // On a busy machine, clocks that are this short may run out before the provider is reached.
    if (trouble.upstream === 'impatient') expect(attempts).toBeLessThanOrEqual(MAX_ATTEMPTS);
    else expect(attempts).toBe(MAX_ATTEMPTS);
  });

  test('a provider that only refuses is an error', async () => {
    const faults = Array.from({ length: ALWAYS }, (): Fault => ({ kind: 'status', status: 503 }));
    const content = planned(`${name}: refused`, [TEXT], faults);
    const asked = client.ask({ model: modelOf('h1'), content, tools: [] });
    await expect(asked).rejects.toThrow('The scripted status is 503.');
    expect(deployment.requests(content)).toHaveLength(MAX_ATTEMPTS);
  });

  test('a settled tool call arrives, although the one after it was cut', async () => {
    const parts = [{ tool: BREST }, { tool: LORIENT }];
    // Two events begin the response, and a call is told in eight.
    const content = planned(`${name}: settled`, parts, [{ kind: 'reset', at: { event: 13 } }]);
    const answer = await client.ask({ model: modelOf('h1'), content, tools: [TIDES] });
    expect(answer).toMatchObject({
      text: '',
      toolCalls: [{ id: BREST.id, name: BREST.name, arguments: JSON.parse(BREST.arguments) as unknown }],
      finish: expect.stringMatching(/^tool[-_]calls$/) as string,
    });
    expect(answer.usage).toBeDefined();
    expect(deployment.requests(content)).toHaveLength(1);
  });
});

describe('on the wire', () => {
  /** The events of one answer. */
  async function ask(question: string, more: object = {}) {
    const response = await fetch(`${deployment.holdfast.url}/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
      body: JSON.stringify({ model: modelOf('h1'), input: question, stream: true, ...more }),
    });
    const body = await response.text();
    return { headers: response.headers, body, reading: readResponses(body) };
  }

  const lastOf = (body: string) =>
    JSON.parse(body.trimEnd().split('\ndata: ').at(-1) ?? '') as Record<string, Record<string, unknown>>;

  test('the failure says what became of the run, to those who look for an error and to those who do not', async () => {
    const faults = Array.from({ length: ALWAYS }, (): Fault => ({ kind: 'error_anthropic', at: WITHIN }));
    const { headers, body, reading } = await ask(planned('wire: exhausted', [TEXT], faults));
    expect(reading).toMatchObject({ violations: [], done: false, finish: undefined });
    const { type, response, error } = lastOf(body);
    const run_id = headers.get('holdfast-run-id');
    expect(type).toBe('response.failed');
    expect(response).toMatchObject({
      id: expect.stringMatching(/^resp_chatcmpl-\d+$/) as string,
      object: 'response',
      status: 'failed',
      error: { code: 'server_error', message: error?.message },
      output: [],
    });
    expect(error).toMatchObject({
      type: 'stream_interrupted',
      message: expect.stringMatching(/provider_5xx \(529\): Overloaded; gave up: attempts$/) as string,
      holdfast: {
        run_id,
        stream_id: response?.id,
        cause: 'provider_5xx',
        attempts: MAX_ATTEMPTS,
        partial: true,
        partial_text: reading.text,
        tool_calls: [],
      },
    });
  });

  test('a cause that clients know keeps its code', async () => {
    const { body, reading } = await ask(
      planned('wire: quota', [TEXT], [{ kind: 'error_quota', at: WITHIN }]),
    );
    expect(reading.violations).toEqual([]);
    expect(lastOf(body).response?.error).toMatchObject({ code: 'insufficient_quota' });
  });

  test('log probabilities cannot be joined', async () => {
    const question = planned('wire: logprobs', [TEXT], [{ kind: 'reset', at: WITHIN }]);
    const { body } = await ask(question, { include: ['message.output_text.logprobs'] });
    expect(lastOf(body).error).toMatchObject({ code: 'not_recoverable' });
    expect(deployment.requests(question)).toHaveLength(1);
  });

  test('before the stream has begun, the provider has its own say', async () => {
    const question = planned(
      'wire: refused',
      [TEXT],
      [{ kind: 'status', status: 400, body: { error: 'no' } }],
    );
    const { body } = await ask(question);
    expect(JSON.parse(body)).toEqual({ error: 'no' });
  });

  test.each([
    [{ input: 7 }, 'input'],
    [{ tools: ['tides'] }, 'tools'],
    [{ model: '' }, 'model'],
  ])('a request with %j is refused as the API refuses it', async (wrong, param) => {
    const client = new OpenAI({ baseURL: deployment.holdfast.url, apiKey: API_KEY, maxRetries: 0 });
    const request = { model: modelOf('h1'), input: 'x', stream: true as const, ...(wrong as object) };
    await expect(client.responses.create(request)).rejects.toMatchObject({ status: 400, param });
  });

  test('a limit that was reached is an answer, not a failure', async () => {
    const question = planned('wire: limit', [TEXT], [{ kind: 'reset', at: WITHIN }]);
    const { reading } = await ask(question, { max_output_tokens: 20, tools: responsesTools([TIDES]) });
    expect(reading).toMatchObject({ violations: [], done: true, finish: 'length' });
    expect(TEXT.text.startsWith(reading.text)).toBe(true);
  });
});
