import { describe, expect, test } from 'vitest';
import { factsOf } from '../../../../src/proxy/wires/chunks/chat-request.ts';
import type { ChatRequest, RequestFacts } from '../../../../src/proxy/wires/common/request.ts';

const request: ChatRequest = { model: 'gpt', stream: true, messages: [{ role: 'user', content: 'Hello' }] };
/** Clients may send anything, so these fields may be ones that the type forbids. */
const factsWith = (fields: object): RequestFacts => factsOf({ ...request, ...fields } as ChatRequest);

test('of the simplest request', () => {
  expect(factsOf(request)).toEqual({
    schemas: new Map(),
    hasTools: false,
    choices: 1,
    spliceable: true,
    onlyReplay: false,
    expectsJson: false,
    stops: [],
    max_tokens: Number.POSITIVE_INFINITY,
    usageAsked: false,
    legacyFunctions: false,
    promptSize: expect.any(Function),
  });
});

describe('what may be joined, and how', () => {
  test.each<[string, object, Partial<RequestFacts>]>([
    ['several choices', { n: 2 }, { choices: 2, spliceable: false }],
    ['one choice', { n: 1 }, { choices: 1, spliceable: true }],
    ['no word on choices', { n: null }, { choices: 1, spliceable: true }],
    ['log probabilities', { logprobs: true }, { spliceable: false }],
    ['no log probabilities', { logprobs: false }, { spliceable: true }],
    ['speech', { modalities: ['text', 'audio'] }, { spliceable: false }],
    ['text alone', { modalities: ['text'] }, { spliceable: true }],
    ['any JSON', { response_format: { type: 'json_object' } }, { onlyReplay: true, expectsJson: true }],
    [
      'JSON of a schema',
      { response_format: { type: 'json_schema', json_schema: {} } },
      { onlyReplay: true, expectsJson: true },
    ],
    ['plain text', { response_format: { type: 'text' } }, { onlyReplay: false, expectsJson: false }],
    ['no format', { response_format: null }, { onlyReplay: false, expectsJson: false }],
    [
      'a format of its own (SGLang)',
      { response_format: { type: 'structural_tag', structures: [] } },
      { onlyReplay: true, expectsJson: false },
    ],
    ['JSON of a schema (vLLM)', { guided_json: {} }, { onlyReplay: true, expectsJson: true }],
    ['JSON of a schema (llama.cpp)', { json_schema: {} }, { onlyReplay: true, expectsJson: true }],
    ['a grammar (llama.cpp)', { grammar: 'root ::= "a"' }, { onlyReplay: true, expectsJson: false }],
    ['a regular expression (SGLang)', { regex: 'a+' }, { onlyReplay: true, expectsJson: false }],
    ['a choice (vLLM)', { structured_outputs: { choice: ['a'] } }, { onlyReplay: true, expectsJson: false }],
    ['no grammar', { grammar: null }, { onlyReplay: false, expectsJson: false }],
    ['any tool, but one', { tool_choice: 'required' }, { onlyReplay: true, expectsJson: false }],
    [
      'a certain tool',
      { tool_choice: { type: 'function', function: { name: 'weather' } } },
      { onlyReplay: true, expectsJson: false },
    ],
    ['tools if need be', { tool_choice: 'auto' }, { onlyReplay: false }],
    ['no word on tools', { tool_choice: null }, { onlyReplay: false }],
  ])('%s', (_, fields, facts) => {
    expect(factsWith(fields)).toMatchObject(facts);
  });
});

describe('limits', () => {
  test.each<[string, object, Partial<RequestFacts>]>([
    ['tokens', { max_tokens: 10 }, { max_tokens: 10 }],
    ['tokens under the newer name', { max_completion_tokens: 20 }, { max_tokens: 20 }],
    ['both: the newer one', { max_tokens: 10, max_completion_tokens: 20 }, { max_tokens: 20 }],
    ['null', { max_completion_tokens: null, max_tokens: 10 }, { max_tokens: 10 }],
    ['no number', { max_tokens: '10' }, { max_tokens: Number.POSITIVE_INFINITY }],
    ['one stop sequence', { stop: 'END' }, { stops: ['END'] }],
    ['several', { stop: ['END', 'STOP'] }, { stops: ['END', 'STOP'] }],
    ['none', { stop: null }, { stops: [] }],
    ['what is none', { stop: ['END', 5] }, { stops: ['END'] }],
  ])('%s', (_, fields, facts) => {
    expect(factsWith(fields)).toMatchObject(facts);
  });
});

describe('tools', () => {
  const parameters = { type: 'object', properties: {} };

  test('each with its schema; one that declares none takes none', () => {
    const { schemas, hasTools } = factsWith({
      tools: [
        { type: 'function', function: { name: 'weather', parameters } },
        { type: 'function', function: { name: 'now' } },
      ],
    });
    expect(hasTools).toBe(true);
    expect([...schemas]).toEqual([
      ['weather', parameters],
      ['now', {}],
    ]);
  });

  test.each<[string, unknown, boolean]>([
    ['none', [], false],
    ['null', null, false],
    ['no list', 'weather', false],
    ['tools without a function', [{ type: 'custom' }], true],
    ['tools without a name', [{ function: {} }], true],
    ['tools that are null', [null], true],
  ])('%s', (_, tools, hasTools) => {
    const facts = factsWith({ tools });
    expect(facts.hasTools).toBe(hasTools);
    expect(facts.schemas.size).toBe(0);
  });

  test('the legacy interface', () => {
    expect(factsWith({ functions: [{ name: 'weather' }] }).legacyFunctions).toBe(true);
    expect(factsWith({ functions: null }).legacyFunctions).toBe(false);
  });
});

test.each<[object, boolean]>([
  [{ stream_options: { include_usage: true } }, true],
  [{ stream_options: { include_usage: false } }, false],
  [{ stream_options: {} }, false],
  [{ stream_options: null }, false],
  [{}, false],
])('the usage is asked for by %j: %s', (fields, usageAsked) => {
  expect(factsWith(fields).usageAsked).toBe(usageAsked);
});

test('the length of every message is known, whatever it consists of', () => {
  const parts = [{ type: 'text', text: 'Hi' }];
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'user', content: parts },
    { role: 'assistant', content: null, tool_calls: [] },
    { role: 'assistant' },
    null,
  ];
  expect(factsWith({ messages }).promptSize().message_characters).toEqual([5, 2, 0, 0, 0]);
});
