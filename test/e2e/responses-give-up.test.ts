import OpenAI from 'openai';
import { describe, expect, test, vi } from 'vitest';
import { needs } from '../needs.ts';
import { readResponses } from '../simulation/responses-reading.ts';
import { aiSdk5Responses, aiSdk6Responses, aiSdkResponses } from './clients/ai-sdk-responses.ts';
import { API_KEY } from './clients/chat-client.ts';
import { langchainResponses } from './clients/langchain-responses.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { openaiResponses, openaiResponsesHelper, responsesTools } from './clients/openai-responses.ts';
import { modelOf } from './deployment.ts';
import { type Clients, describeGiveUp, lostForGood, MAX_ATTEMPTS, TEXT } from './give-up.ts';
import { pythonEnvironment } from './python/environment.ts';
import { TIDES } from './situations.ts';

vi.setConfig({ maxConcurrency: 16 });

/** After the start of the response, the item and its part, and some words or arguments. */
const WITHIN = { event: 7 } as const;

const python = await pythonEnvironment();
const CLIENTS: Clients = [
  ['openai, responses.create()', openaiResponses],
  ['openai, responses.stream()', openaiResponsesHelper],
  ['ai with @ai-sdk/openai, responses', aiSdkResponses],
  ['ai 6 with @ai-sdk/openai 3, responses', aiSdk6Responses],
  ['ai 5 with @ai-sdk/openai 2, responses', aiSdk5Responses],
  ['@langchain/openai, responses', langchainResponses],
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
      ] satisfies Clients)),
];
if ('missing' in python) test('openai for Python', needs(python), () => {});

const giveUp = describeGiveUp({
  clients: CLIENTS,
  lostBy: ['reset', 'clean_eof', 'done_without_finish', 'error_openai', 'error_openrouter', 'silence'],
  within: (answer) => (answer === 'a tool call' ? { event: 4 } : WITHIN),
  // Two events start the response, and each call takes eight.
  inSecondCall: () => ({ event: 13 }),
});
const { planned } = giveUp;

describe('on the wire', () => {
  /** The events of one answer. */
  async function ask(question: string, more: object = {}) {
    const response = await fetch(`${giveUp.deployment.holdfast.url}/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
      body: JSON.stringify({ model: modelOf('h1'), input: question, stream: true, ...more }),
    });
    const body = await response.text();
    return { headers: response.headers, body, reading: readResponses(body) };
  }

  const lastOf = (body: string) =>
    JSON.parse(body.trimEnd().split('\ndata: ').at(-1) ?? '') as Record<string, Record<string, unknown>>;

  test('the failure gives the outcome of the run, both to SDKs that look for an error and to those that do not', async () => {
    const faults = lostForGood((at) => ({ kind: 'error_anthropic', at }), WITHIN);
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
      message: expect.stringMatching(
        /provider_5xx, 529\): Overloaded; gave up after \d+ attempts \(attempts\)$/,
      ) as string,
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
    expect(giveUp.deployment.requests(question)).toHaveLength(1);
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
    const client = new OpenAI({ baseURL: giveUp.deployment.holdfast.url, apiKey: API_KEY, maxRetries: 0 });
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
