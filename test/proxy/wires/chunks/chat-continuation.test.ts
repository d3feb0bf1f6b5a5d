import { describe, expect, test } from 'vitest';
import { nudgeText } from '../../../../src/plans/continuation.ts';
import { prefixOf } from '../../../../src/plans/seam/mode.ts';
import { continuationOf } from '../../../../src/proxy/wires/chunks/chat-request.ts';
import type { ChatRequest, ContinuationFacts } from '../../../../src/proxy/wires/common/request.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';

const request: ChatRequest = {
  model: 'gpt',
  stream: true,
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'What is a holdfast?' },
  ],
  temperature: 0,
  stop: ['END'],
};

const facts: ContinuationFacts<ChatRequest> = {
  request,
  dialect: DIALECTS.generic,
  first: {},
  mode: 'prefill',
  prefix: prefixOf('The organ with which kelp ', false),
  reasoning: 'Kelp.',
  sealed: [],
  cutTools: [],
  insists: false,
  keepsCache: false,
  tokens_left: Number.POSITIVE_INFINITY,
};
const SENT = 'The organ with which kelp';

const continuation = (changes: Partial<ContinuationFacts<ChatRequest>> = {}) =>
  continuationOf({ ...facts, ...changes });
const addedMessages = (changes: Partial<ContinuationFacts<ChatRequest>> = {}) =>
  continuation(changes).body.messages.slice(request.messages.length);

describe('prefill', () => {
  test.each([
    ['generic', { role: 'assistant', content: SENT }],
    ['mistral', { role: 'assistant', content: SENT, prefix: true }],
    ['vllm', { role: 'assistant', content: SENT }],
    ['deepseek', { role: 'assistant', content: SENT, reasoning_content: 'Kelp.', prefix: true }],
  ] as const)('%s: the partial answer is the last message', (name, message) => {
    expect(addedMessages({ dialect: DIALECTS[name] })).toEqual([message]);
  });

  test('vLLM needs both of its flags, and is told not to echo', () => {
    expect(continuation({ dialect: DIALECTS.vllm }).body).toMatchObject({
      continue_final_message: true,
      add_generation_prompt: false,
      echo: false,
    });
  });

  test('without reasoning none is sent', () => {
    const [message] = addedMessages({ dialect: DIALECTS.deepseek, reasoning: '' });
    expect(message).not.toHaveProperty('reasoning_content');
  });

  test('counts what it added', () => {
    expect(continuation().added_messages).toEqual([SENT.length]);
  });
});

describe('nudge', () => {
  const nudged = { mode: 'nudge' } as const;

  test('the partial answer and the request for the rest', () => {
    const nudge = nudgeText({ delivered: SENT, hasTools: false, cutTools: [], insists: false });
    expect(addedMessages(nudged)).toEqual([
      { role: 'assistant', content: SENT },
      { role: 'user', content: nudge },
    ]);
    expect(continuation(nudged).added_messages).toEqual([SENT.length, nudge.length]);
  });

  test('carries nothing of the dialect: a turn that is over is the same everywhere', () => {
    const { body } = continuation({ ...nudged, dialect: DIALECTS.mistral });
    expect(body).toEqual({ ...request, messages: body.messages });
    expect(addedMessages({ ...nudged, dialect: DIALECTS.deepseek })[0]).toEqual({
      role: 'assistant',
      content: SENT,
    });
  });

  test.each(['vllm', 'sglang', 'llamacpp'] as const)('turns thinking off where %s can', (name) => {
    const { body } = continuation({ ...nudged, dialect: DIALECTS[name] });
    expect(body).toMatchObject({ chat_template_kwargs: { enable_thinking: false } });
    expect(body).not.toHaveProperty('continue_final_message');
  });

  test('reminds of tools where there are some', () => {
    const tools = [{ type: 'function', function: { name: 'weather' } }];
    const last = (changes: Partial<ContinuationFacts<ChatRequest>>) =>
      continuation({ ...nudged, ...changes }).body.messages.at(-1)?.content;
    expect(last({ request: { ...request, tools } })).toContain('call it now');
    expect(last({ request: { ...request, tools }, cutTools: ['weather'] })).toContain(
      '`weather` was cut off',
    );
    expect(last({ request: { ...request, tools: [] } })).not.toContain('tool');
    expect(last({ request: { ...request, tools: null } })).not.toContain('tool');
  });
});

describe.each(['replay', 'restart'] as const)('%s', (mode) => {
  test('is the request itself', () => {
    const limited = { ...request, max_tokens: 100 };
    expect(continuation({ mode, request: limited, tokens_left: 10 })).toEqual({
      body: limited,
      added_messages: [],
    });
  });
});

describe('the request', () => {
  test('stays as it is but for what is appended', () => {
    const { body } = continuation();
    expect(body).toEqual({
      ...request,
      messages: [...request.messages, { role: 'assistant', content: SENT }],
    });
  });

  test.each<[string, object, number, object]>([
    ['no limit', {}, Number.POSITIVE_INFINITY, {}],
    ['max_tokens', { max_tokens: 100 }, 60, { max_tokens: 60 }],
    ['max_completion_tokens', { max_completion_tokens: 100 }, 60, { max_completion_tokens: 60 }],
    [
      'both',
      { max_tokens: 9, max_completion_tokens: 100 },
      60,
      { max_tokens: 60, max_completion_tokens: 60 },
    ],
    ['a limit of null', { max_tokens: null }, Number.POSITIVE_INFINITY, { max_tokens: null }],
    ['a limit that is spent, for providers refuse 0', { max_tokens: 100 }, 0, { max_tokens: 1 }],
  ])('asks for what is left: %s', (_, limits, tokens_left, expected) => {
    for (const mode of ['prefill', 'nudge'] as const) {
      const { messages, ...body } = continuation({
        mode,
        request: { ...request, ...limits },
        tokens_left,
      }).body;
      const { messages: _messages, ...rest } = request;
      expect(body).toEqual({ ...rest, ...expected });
    }
  });
});

describe('a prefill of the client’s own', () => {
  const own = (message: object): ChatRequest => ({
    ...request,
    messages: [...request.messages, { role: 'assistant', ...message }],
  });

  test.each(['prefill', 'nudge'] as const)('and the partial answer are one turn: %s', (mode) => {
    const [message, ...others] = addedMessages({ mode, request: own({ content: 'Well: ', name: 'kelp' }) });
    expect(message).toEqual({ role: 'assistant', content: `Well: ${SENT}`, name: 'kelp' });
    expect(others).toHaveLength(mode === 'nudge' ? 1 : 0);
  });

  test.each<[string, object]>([
    ['a call', { content: '', tool_calls: [{ id: 'a' }] }],
    ['parts', { content: [{ type: 'text', text: 'Well' }] }],
    ['nothing', { content: null }],
  ])('is none if it is %s', (_, message) => {
    expect(addedMessages({ request: own(message) })).toEqual([
      { role: 'assistant', ...message },
      { role: 'assistant', content: SENT },
    ]);
  });
});
