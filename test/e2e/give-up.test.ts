import { describe, expect, test, vi } from 'vitest';
import { needs } from '../needs.ts';
import type { Fault } from '../provider/fault.ts';
import { aiSdkCompatible, aiSdkOpenai } from './clients/ai-sdk.ts';
import { langchain } from './clients/langchain.ts';
import { openaiChunks, openaiHelper } from './clients/openai.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { modelOf } from './deployment.ts';
import { BREST, type Clients, describeGiveUp, LORIENT, lostForGood, MAX_ATTEMPTS, TEXT } from './give-up.ts';
import { pythonEnvironment } from './python/environment.ts';
import { rawAnswer, streamRequest } from './raw-client.ts';
import { TIDES } from './situations.ts';

vi.setConfig({ maxConcurrency: 16 });

const IN_TEXT = { event: 6 } as const;

const python = await pythonEnvironment();
const CLIENTS: Clients = [
  ['openai, chunk by chunk', openaiChunks],
  ['openai, .stream()', openaiHelper],
  ['ai with @ai-sdk/openai', aiSdkOpenai],
  ['ai with @ai-sdk/openai-compatible', aiSdkCompatible],
  ['@langchain/openai', langchain],
  ...('missing' in python
    ? []
    : ([
        ['openai for Python, chunks', (url) => new OpenaiPython(python.interpreter, 'chunks', url)],
        ['openai for Python, helper', (url) => new OpenaiPython(python.interpreter, 'helper', url)],
      ] satisfies Clients)),
];
if ('missing' in python) test('openai for Python', needs(python), () => {});

const giveUp = describeGiveUp({
  clients: CLIENTS,
  lostBy: ['reset', 'clean_eof', 'done_without_finish', 'error_vllm', 'finish_abort', 'silence'],
  within: () => IN_TEXT,
  // After the role, the whole first call, and part of the second.
  inSecondCall: () => ({ event: 11 }),
});
const { planned } = giveUp;

describe('on the wire', () => {
  const ask = (question: string, more: object = {}) =>
    rawAnswer(giveUp.deployment.holdfast.url, streamRequest(modelOf('h1'), question, more));

  test('the error says what became of the run, and neither finish reason nor [DONE] follows', async () => {
    const faults = lostForGood((at) => ({ kind: 'error_anthropic', at }), IN_TEXT);
    const answer = await ask(planned('wire: exhausted', [TEXT], faults));
    expect(answer).toMatchObject({ status: 200, finish: undefined, done: false });
    expect(answer.text).toBe('The tide comes in twice');
    const run_id = answer.headers.get('holdfast-run-id');
    expect(run_id).toMatch(/^run_[\w-]{22}$/);
    const { message, ...error } = (answer.chunks.at(-1)?.error ?? {}) as Record<string, unknown>;
    expect(message).toMatch(/provider_5xx, 529\): Overloaded; gave up after \d+ attempts \(attempts\)$/);
    expect(error).toEqual({
      type: 'stream_interrupted',
      param: null,
      code: 'stream_interrupted',
      holdfast: {
        run_id,
        root_request_id: run_id,
        stream_id: answer.chunks[0]?.id,
        created_at: expect.any(Number),
        cause: 'provider_5xx',
        attempts: MAX_ATTEMPTS,
        retryable: true,
        terminal_message: message,
        partial: true,
        partial_chars: answer.text.length,
        partial_text: answer.text,
        partial_text_truncated: false,
        parts: [{ type: 'text', text: answer.text }],
        tool_calls: [],
      },
    });
    expect(answer.chunks.filter(({ error }) => error)).toHaveLength(1);
    expect(answer.chunks.some(({ usage }) => usage)).toBe(false);
  });

  test('settled tool calls come before every reason to give up', async () => {
    const parts = [TEXT, { tool: BREST }, { tool: LORIENT }];
    const afterFirstCall = { event: 1 + 22 + 10 } as const;
    const faults: Fault[] = [
      { kind: 'reset', at: { event: 1 } },
      { kind: 'error_quota', at: afterFirstCall },
    ];
    const answer = await ask(planned('wire: settled', parts, faults), {
      tools: [{ type: 'function', function: TIDES }],
    });
    expect(answer).toMatchObject({
      text: TEXT.text,
      toolCalls: [BREST],
      finish: 'tool_calls',
      done: true,
    });
    expect(answer.chunks.at(-1)?.usage).toBeDefined();
  });

  test.each([
    ['n: 2', { n: 2 }],
    ['logprobs', { logprobs: true }],
  ])('%s cannot be joined in the middle of the stream', async (name, more) => {
    const question = planned(`wire: ${name}`, [TEXT], [{ kind: 'reset', at: IN_TEXT }]);
    const answer = await ask(question, more);
    expect(answer).toMatchObject({ text: 'The tide comes in twice', finish: undefined, done: false });
    expect(answer.chunks.at(-1)?.error).toMatchObject({
      type: 'stream_interrupted',
      code: 'not_recoverable',
      holdfast: { cause: 'connection_reset', attempts: 1, partial_chars: answer.text.length },
    });
    expect(giveUp.deployment.requests(question)).toHaveLength(1);
  });

  test('logprobs are no obstacle while nothing was said', async () => {
    const question = planned('wire: logprobs early', [TEXT], [{ kind: 'reset', at: { event: 1 } }]);
    const answer = await ask(question, { logprobs: true });
    expect(answer).toMatchObject({ text: TEXT.text, finish: 'stop', done: true });
    expect(giveUp.deployment.requests(question)).toHaveLength(2);
  });
});
