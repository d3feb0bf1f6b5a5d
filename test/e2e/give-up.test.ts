import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import type { Part } from '../provider/script.ts';
import { aiSdkCompatible, aiSdkOpenai } from './clients/ai-sdk.ts';
import type { ChatClient } from './clients/chat-client.ts';
import { langchain } from './clients/langchain.ts';
import { openaiChunks, openaiHelper } from './clients/openai.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { Deployment, modelOf } from './deployment.ts';
import { pythonEnvironment } from './python/environment.ts';
import { rawAnswer, streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';
import { TROUBLES, type Trouble } from './troubles.ts';

vi.setConfig({ maxConcurrency: 16 });

const MAX_ATTEMPTS = 2;
/** More than are ever made. */
const ALWAYS = MAX_ATTEMPTS + 2;
const TEXT = {
  text: 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.',
};
const [BREST, LORIENT] = [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')];
const IN_TEXT = { event: 6 } as const;
/** After the role, all of the first call, and some of the second. */
const IN_SECOND_CALL = { event: 11 } as const;

type Connect = (url: string) => ChatClient;
const python = await pythonEnvironment();
const CLIENTS: readonly (readonly [name: string, connect: Connect])[] = [
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

const troubled = (...names: string[]): Trouble[] => TROUBLES.filter(({ name }) => names.includes(name));

describe.concurrent.each(CLIENTS)('%s', (name, connect) => {
  let client: ChatClient;
  beforeAll(() => {
    client = connect(deployment.holdfast.url);
  });
  afterAll(() => client.close?.());

  const lost = troubled('reset', 'clean_eof', 'done_without_finish', 'error_vllm', 'finish_abort', 'silence');
  const answers: [string, Part[]][] = [
    ['text', [TEXT]],
    ['reasoning and text', [{ reasoning: 'Kelp.' }, TEXT]],
    ['text and a tool call', [TEXT, { tool: BREST }]],
    ['a tool call', [{ tool: BREST }]],
  ];
  const cases = answers.flatMap(([said, parts]) => lost.map((trouble) => ({ said, parts, trouble })));

  test.each(cases)('$said, lost for good by $trouble.name, is an error', async ({ said, parts, trouble }) => {
    const faults = Array.from({ length: ALWAYS }, () => trouble.fault(IN_TEXT));
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

  test('a settled tool call arrives, although the one after it was cut', async () => {
    const parts = [{ tool: BREST }, { tool: LORIENT }];
    const content = planned(`${name}: settled`, parts, [{ kind: 'reset', at: IN_SECOND_CALL }]);
    const answer = await client.ask({ model: modelOf('h1'), content, tools: [TIDES] });
    expect(answer).toMatchObject({
      text: '',
      toolCalls: [{ id: BREST.id, name: BREST.name, arguments: JSON.parse(BREST.arguments) as unknown }],
      finish: expect.stringMatching(/^tool[-_]calls$/),
    });
    expect(answer.usage).toBeDefined();
    expect(deployment.requests(content)).toHaveLength(1);
  });
});

describe('on the wire', () => {
  const ask = (question: string, more: object = {}) =>
    rawAnswer(deployment.holdfast.url, streamRequest(modelOf('h1'), question, more));

  test('the error says what became of the run, and neither finish reason nor [DONE] follows', async () => {
    const faults = Array.from({ length: ALWAYS }, (): Fault => ({ kind: 'error_anthropic', at: IN_TEXT }));
    const answer = await ask(planned('wire: exhausted', [TEXT], faults));
    expect(answer).toMatchObject({ status: 200, finish: undefined, done: false });
    expect(TEXT.text.startsWith(answer.text)).toBe(true);
    expect(answer.text.length).toBeGreaterThan('The tide comes in twice'.length);
    const run_id = answer.headers.get('holdfast-run-id');
    expect(run_id).toMatch(/^run_[\w-]{22}$/);
    const { message, ...error } = (answer.chunks.at(-1)?.error ?? {}) as Record<string, unknown>;
    expect(message).toMatch(/provider_5xx \(529\): Overloaded; gave up: attempts$/);
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
    expect(deployment.requests(question)).toHaveLength(1);
  });

  test('logprobs are no obstacle while nothing was said', async () => {
    const question = planned('wire: logprobs early', [TEXT], [{ kind: 'reset', at: { event: 1 } }]);
    const answer = await ask(question, { logprobs: true });
    expect(answer).toMatchObject({ text: TEXT.text, finish: 'stop', done: true });
    expect(deployment.requests(question)).toHaveLength(2);
  });
});
