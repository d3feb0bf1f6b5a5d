import { describe, expect, test } from 'vitest';
import {
  checkMessagesRequest,
  type MessagesRequest,
  messagesFactsOf,
} from '../../../../src/proxy/wires/messages/request.ts';

const MESSAGES = [{ role: 'user', content: 'Tell me.' }];
const request = (fields: object = {}): MessagesRequest => ({
  model: 'claude-opus-4-6',
  stream: true,
  max_tokens: 100,
  messages: MESSAGES,
  ...fields,
});

describe('what is checked', () => {
  test.each<[string, object, RegExp]>([
    ['no model', { model: undefined }, /'model'/],
    ['no messages', { messages: undefined }, /'messages'/],
    ['messages that are none', { messages: [] }, /'messages'/],
    ['a message without a role', { messages: [...MESSAGES, { content: 'x' }] }, /'messages\[1\]'/],
    ['tools that are no objects', { tools: ['tides'] }, /'tools'/],
    ['one stop sequence', { stop_sequences: 'END' }, /'stop_sequences'/],
    ['stop sequences that are no texts', { stop_sequences: [1] }, /'stop_sequences'/],
  ])('%s', (_, fields, message) => {
    expect(() => checkMessagesRequest({ ...request(), ...fields })).toThrow(message);
  });

  test('everything else is for the provider to judge', () => {
    const fields = {
      ...request(),
      max_tokens: undefined,
      tools: null,
      stop_sequences: null,
      thinking: 7,
      x: 1,
    };
    expect(checkMessagesRequest(fields)).toBe(fields);
  });
});

describe('what a request says about its answer', () => {
  test('a plain one', () => {
    expect(messagesFactsOf(request())).toEqual({
      schemas: new Map(),
      hasTools: false,
      choices: 1,
      spliceable: true,
      onlyReplay: false,
      expectsJson: false,
      stops: [],
      max_tokens: 100,
      usageAsked: true,
      legacyFunctions: false,
      promptSize: expect.any(Function),
    });
  });

  test('tools, those that the provider runs among them', () => {
    const input_schema = { type: 'object', properties: {} };
    const tools = [
      { name: 'tides', input_schema },
      { type: 'web_search_20250305', name: 'web_search' },
    ];
    const facts = messagesFactsOf(request({ tools }));
    expect(facts.hasTools).toBe(true);
    expect([...facts.schemas]).toEqual([
      ['tides', input_schema],
      ['web_search', {}],
    ]);
  });

  test.each<[string, object, boolean, boolean]>([
    ['a tool is forced', { tool_choice: { type: 'tool', name: 'tides' } }, true, false],
    ['any tool is forced', { tool_choice: { type: 'any' } }, true, false],
    ['no tool is forced', { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }, false, false],
    [
      'the answer has a schema',
      { output_config: { format: { type: 'json_schema', schema: {} } } },
      true,
      true,
    ],
    [
      'the answer has a schema, as in its trial',
      { output_format: { type: 'json_schema', schema: {} } },
      true,
      true,
    ],
    ['only the effort is said', { output_config: { effort: 'low' } }, false, false],
  ])('%s', (_, fields, onlyReplay, expectsJson) => {
    expect(messagesFactsOf(request(fields))).toMatchObject({ onlyReplay, expectsJson });
  });

  test('the rest', () => {
    const content = [{ type: 'text', text: 'x' }];
    const fields = {
      stop_sequences: ['END'],
      max_tokens: null,
      system: 'Be brief.',
      messages: [{ role: 'user', content }],
    };
    expect(messagesFactsOf(request(fields))).toMatchObject({
      stops: ['END'],
      max_tokens: Number.POSITIVE_INFINITY,
    });
    expect(messagesFactsOf(request(fields)).promptSize().message_characters).toEqual([9, 1]);
  });
});
