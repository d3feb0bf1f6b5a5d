import { describe, expect, test } from 'vitest';
import { nudgeText } from '../../../../src/plans/continuation.ts';
import { prefixOf } from '../../../../src/plans/seam/mode.ts';
import type { ContinuationFacts } from '../../../../src/proxy/wires/common/request.ts';
import { anthropic } from '../../../../src/proxy/wires/dialects/model-hosts.ts';
import {
  type MessagesRequest,
  messagesContinuationOf,
  messagesKeepsCache,
} from '../../../../src/proxy/wires/messages/request.ts';

const REQUEST: MessagesRequest = {
  model: 'claude-sonnet-4-5',
  stream: true,
  max_tokens: 100,
  system: 'Be brief.',
  messages: [{ role: 'user', content: 'What is a holdfast?' }],
  temperature: 1,
  stop_sequences: ['END'],
};
const THOUGHT = { type: 'thinking', thinking: 'Kelp.', signature: 'c2ln' };
const SENT = 'The organ with which kelp';
const NUDGE = {
  role: 'user',
  content: nudgeText({ delivered: SENT, hasTools: false, cutTools: [], insists: false }),
};

const continuation = ({
  request = {},
  ...changes
}: Partial<Omit<ContinuationFacts, 'request'>> & { request?: object } = {}) =>
  messagesContinuationOf({
    request: { ...REQUEST, ...request },
    dialect: anthropic,
    first: {},
    mode: 'prefill',
    prefix: prefixOf(`${SENT} `, false),
    reasoning: 'Kelp.',
    sealed: [],
    cutTools: [],
    insists: false,
    keepsCache: false,
    tokens_left: 60,
    ...changes,
  });
const added = (...changes: Parameters<typeof continuation>) =>
  continuation(...changes).body.messages.slice(1);

describe('prefill', () => {
  test('the partial answer is the last message, without the space at its end', () => {
    const { body, added_messages } = continuation();
    expect(body).toEqual({
      ...REQUEST,
      max_tokens: 60,
      messages: [...REQUEST.messages, { role: 'assistant', content: SENT }],
    });
    expect(added_messages).toEqual([SENT.length]);
  });

  test.each([{ type: 'enabled', budget_tokens: 2048 }, { type: 'adaptive' }])(
    'thinking is turned off, and no thoughts are sent: %j',
    (thinking) => {
      const { body } = continuation({ request: { thinking }, sealed: [THOUGHT] });
      expect(body.thinking).toEqual({ type: 'disabled' });
      expect(body.messages.at(-1)).toEqual({ role: 'assistant', content: SENT });
    },
  );

  test.each<[string, unknown, unknown]>([
    ['a text', '{"a": ', `{"a": ${SENT}`],
    ['blocks', [{ type: 'text', text: '{"a": ' }], `{"a": ${SENT}`],
    [
      'blocks that are cached',
      [{ type: 'text', text: '{', cache_control: { type: 'ephemeral' } }],
      [{ type: 'text', text: `{${SENT}`, cache_control: { type: 'ephemeral' } }],
    ],
    [
      'blocks that end with another kind',
      [{ type: 'server_tool_use', id: 's' }],
      [
        { type: 'server_tool_use', id: 's' },
        { type: 'text', text: SENT },
      ],
    ],
  ])("continues the client's own prefill, given as %s", (_, content, whole) => {
    const messages = [...REQUEST.messages, { role: 'assistant', content }];
    expect(added({ request: { messages } })).toEqual([{ role: 'assistant', content: whole }]);
  });
});

describe('nudge', () => {
  test('the partial answer is a turn of its own, and the user asks for the rest', () => {
    const { body, added_messages } = continuation({ mode: 'nudge' });
    expect(body).toEqual({
      ...REQUEST,
      max_tokens: 60,
      messages: [...REQUEST.messages, { role: 'assistant', content: SENT }, NUDGE],
    });
    expect(added_messages).toEqual([SENT.length, NUDGE.content.length]);
  });

  test('thoughts that are signed stay at the head of the turn', () => {
    expect(added({ mode: 'nudge', sealed: [THOUGHT] })).toEqual([
      { role: 'assistant', content: [THOUGHT, { type: 'text', text: SENT }] },
      NUDGE,
    ]);
  });

  test.each([{ type: 'adaptive' }, { type: 'enabled', budget_tokens: 2048 }])(
    'thinking that was asked for as %j is turned off, and its thoughts are left out',
    (thinking) => {
      const { body } = continuation({ mode: 'nudge', request: { thinking }, sealed: [THOUGHT] });
      expect(body.thinking).toEqual({ type: 'disabled' });
      expect(JSON.stringify(body.messages)).not.toContain('signature');
    },
  );

  test('thinking stays as it was, and so do its thoughts, where the prompt is cached', () => {
    const thinking = { type: 'adaptive' };
    const { body } = continuation({
      mode: 'nudge',
      request: { thinking },
      sealed: [THOUGHT],
      keepsCache: true,
    });
    expect(body.thinking).toBe(thinking);
    expect(body.messages.slice(1)).toEqual([
      { role: 'assistant', content: [THOUGHT, { type: 'text', text: SENT }] },
      NUDGE,
    ]);
  });

  test('the calls that were cut are named', () => {
    const tools = [{ name: 'tides', input_schema: {} }];
    const [, last] = added({ mode: 'nudge', request: { tools }, cutTools: ['tides'] });
    expect(last?.content).toContain('`tides`');
    expect(last?.content).toContain('did not run');
  });
});

describe('the prompt cache decides whether thinking stays on', () => {
  const started = (read: unknown, written: unknown = 0) => ({
    message: { usage: { cache_read_input_tokens: read, cache_creation_input_tokens: written } },
  });
  const keeps = (changes: object = {}, thinking: unknown = { type: 'adaptive' }) =>
    messagesKeepsCache({
      request: { ...REQUEST, thinking },
      first: started(50_000),
      sealed: [],
      tokens_left: 1_000,
      ...changes,
    });
  const sealedIn = (tokens: number) => [{ ...THOUGHT, signature: 's'.repeat(4 * tokens) }];

  test.each<[string, object, unknown?]>([
    ['what was read from the cache', {}],
    ['what was written to it', { first: started(0, 50_000) }],
    ['a budget that is left', { tokens_left: 2_001 }, { type: 'enabled', budget_tokens: 2_000 }],
    ['thoughts that cost less', { sealed: sealedIn(900) }],
  ])('it does: %s', (_, changes, thinking) => {
    expect(keeps(changes, thinking)).toBe(true);
  });

  test.each<[string, object, unknown?]>([
    ['nothing is cached', { first: started(0) }],
    ['the answer had not begun', { first: {} }],
    ['the usage is odd', { first: started('many', -5) }],
    ['there is no usage', { first: { message: null } }],
    [
      'a budget that does not fit any more',
      { tokens_left: 2_000 },
      { type: 'enabled', budget_tokens: 2_000 },
    ],
    ['as many thoughts would not fit', { sealed: sealedIn(1_000) }],
    ['thoughts cost more than the cache', { first: started(3_000), sealed: sealedIn(900) }],
    ['there is no thinking to turn off', {}, { type: 'disabled' }],
    ['thinking was not asked for', {}, null],
  ])('it does not: %s', (_, changes, thinking) => {
    expect(keeps(changes, thinking)).toBe(false);
  });
});

test.each(['replay', 'restart'] as const)('%s: the request as it was', (mode) => {
  expect(continuation({ mode })).toEqual({ body: REQUEST, added_messages: [] });
});
