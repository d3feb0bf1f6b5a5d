import { describe, expect, test, vi } from 'vitest';
import { needs } from '../needs.ts';
import { aiSdkAnthropic } from './clients/ai-sdk-anthropic.ts';
import { anthropicEvents, anthropicHelper } from './clients/anthropic.ts';
import { AnthropicPython } from './clients/anthropic-python.ts';
import { API_KEY } from './clients/chat-client.ts';
import { langchainAnthropic } from './clients/langchain-anthropic.ts';
import { modelOf } from './deployment.ts';
import { type Clients, describeGiveUp, lostForGood, MAX_ATTEMPTS, refusalOf, TEXT } from './give-up.ts';
import { afterDeltas } from './message-situations.ts';
import { pythonEnvironment } from './python/environment.ts';

vi.setConfig({ maxConcurrency: 16 });

const python = await pythonEnvironment();
const CLIENTS: Clients = [
  ['anthropic, event by event', anthropicEvents],
  ['anthropic, .stream()', anthropicHelper],
  ['ai with @ai-sdk/anthropic', aiSdkAnthropic],
  ['@langchain/anthropic', langchainAnthropic],
  ...('missing' in python
    ? []
    : ([
        ['anthropic for Python, events', (url) => new AnthropicPython(python.interpreter, 'events', url)],
        ['anthropic for Python, helper', (url) => new AnthropicPython(python.interpreter, 'helper', url)],
      ] satisfies Clients)),
];
if ('missing' in python) test('anthropic for Python', needs(python), () => {});

const giveUp = describeGiveUp({
  clients: CLIENTS,
  lostBy: ['reset', 'clean_eof', 'done_without_finish', 'error_anthropic', 'finish_abort', 'silence'],
  // After the starts of the message and the block, a ping, and two deltas.
  within: () => ({ event: 5 }),
  inSecondCall: (parts) => afterDeltas(parts, 'input_json_delta', 8),
  refusal: { type: 'error', ...refusalOf('api_error') },
});
const { planned } = giveUp;

describe('on the wire', () => {
  const ask = (question: string, more: object = {}) =>
    fetch(`${giveUp.deployment.holdfast.url}/messages`, {
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
    const faults = lostForGood((where) => ({ kind: 'error_anthropic', at: where }), at);
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
        message: expect.stringMatching(
          /provider_5xx, 529\): Overloaded; gave up after \d+ attempts \(attempts\)$/,
        ) as string,
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
