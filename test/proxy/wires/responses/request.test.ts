import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../../src/lib/errors.ts';
import { prefixOf } from '../../../../src/plans/seam/mode.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';
import {
  backgroundFields,
  checkResponsesRequest,
  isBackground,
  type ResponsesRequest,
  responsesContinuationOf,
  responsesFactsOf,
} from '../../../../src/proxy/wires/responses/request.ts';

const REQUEST: ResponsesRequest = { model: 'm', input: 'Tides?', stream: true };
const factsOf = (more: object = {}) => responsesFactsOf({ ...REQUEST, ...more });

describe('a request', () => {
  test.each([{}, { input: [] }, { input: null, prompt: { id: 'pmpt_1' } }, { tools: null }])(
    'may have %j',
    (more) => {
      expect(() => checkResponsesRequest({ ...REQUEST, ...more })).not.toThrow();
    },
  );

  test.each([
    { model: undefined },
    { model: '' },
    { input: 7 },
    { input: {} },
    { tools: {} },
    { tools: ['x'] },
  ])('may not have %j', (more) => {
    expect(() => checkResponsesRequest({ ...REQUEST, ...more })).toThrow(ApiError);
  });
});

describe('what matters of it', () => {
  test('nothing special', () => {
    expect(factsOf()).toEqual({
      schemas: new Map(),
      hasTools: false,
      choices: 1,
      spliceable: true,
      onlyReplay: false,
      expectsJson: false,
      stops: [],
      max_tokens: Infinity,
      usageAsked: true,
      legacyFunctions: false,
      promptSize: expect.any(Function),
    });
  });

  test('tools by name, those of a namespace, too', () => {
    const parameters = { type: 'object' };
    const nested = {
      type: 'namespace',
      name: 'sea',
      tools: [{ type: 'function', name: 'tides', parameters }],
    };
    const tools = [{ type: 'function', name: 'now' }, { type: 'web_search' }, nested];
    expect(factsOf({ tools })).toMatchObject({
      hasTools: true,
      schemas: new Map<string, object>([
        ['now', {}],
        ['tides', parameters],
      ]),
    });
  });

  test.each<[unknown, boolean]>([
    ['required', true],
    ['auto', false],
    [{ type: 'function', name: 'now' }, true],
    [{ type: 'allowed_tools', mode: 'auto', tools: [] }, false],
    [{ type: 'allowed_tools', mode: 'required', tools: [] }, true],
  ])('tool_choice %j, which forces a tool: %s', (tool_choice, onlyReplay) => {
    expect(factsOf({ tool_choice })).toMatchObject({ onlyReplay, expectsJson: false });
  });

  test.each([
    ['text', false],
    ['json_object', true],
    ['json_schema', true],
  ])('a format of type %s, which is a document: %s', (type, isDocument) => {
    expect(factsOf({ text: { format: { type } } })).toMatchObject({
      onlyReplay: isDocument,
      expectsJson: isDocument,
    });
  });

  test.each([{ top_logprobs: 3 }, { include: ['message.output_text.logprobs'] }])(
    '%j, which cannot be joined',
    (more) => {
      expect(factsOf(more)).toMatchObject({ spliceable: false });
    },
  );

  test('the limit, and how long it is', () => {
    const input = [{ role: 'user', content: [{ type: 'input_text', text: 'Tides?' }] }];
    const { max_tokens, promptSize } = factsOf({
      max_output_tokens: 99,
      instructions: 'Short.',
      input,
    });
    expect(max_tokens).toBe(99);
    expect(promptSize()).toEqual({ message_characters: [6, 6], tool_characters: 0, media_tokens: 0 });
  });

  test.each([
    [{ background: true }, true],
    [{ background: true, store: true }, true],
    [{ background: true, store: false }, false],
    [{ background: false }, false],
    [{}, false],
  ])('%j, which outlives its connection: %s', (more, expected) => {
    expect(isBackground({ ...REQUEST, ...more })).toBe(expected);
  });

  test.each([
    [{}, { background: true, store: true }],
    [{ store: true }, { background: true }],
    [{ store: false }, undefined],
    [{ store: null }, undefined],
    [{ background: false }, undefined],
    [{ background: true }, undefined],
  ])('%j, which the operator may have made so with %j', (more, expected) => {
    expect(backgroundFields({ ...REQUEST, ...more })).toEqual(expected);
  });
});

describe('the request for the rest', () => {
  const nudged = (request: ResponsesRequest, tokens_left = Infinity) =>
    responsesContinuationOf({
      request,
      dialect: DIALECTS.openai,
      first: {},
      mode: 'nudge',
      prefix: prefixOf('Twice a day, ', false),
      reasoning: '',
      sealed: [],
      cutTools: [],
      insists: false,
      keepsCache: false,
      tokens_left,
    });

  test('has the answer so far and a turn of the user’s after the input', () => {
    const { body, added_messages } = nudged(REQUEST);
    const nudge = expect.stringContaining('Repeat its last words exactly, "Twice a day,"') as string;
    expect(body).toEqual({
      ...REQUEST,
      input: [
        { role: 'user', content: 'Tides?' },
        { type: 'message', role: 'assistant', content: 'Twice a day,' },
        { type: 'message', role: 'user', content: nudge },
      ],
    });
    expect(added_messages).toHaveLength(2);
  });

  test('after whatever is in a list, or after nothing', () => {
    const call = { type: 'function_call_output', call_id: 'call_a', output: 'low' };
    expect(nudged({ ...REQUEST, input: [call] }).body.input?.[0]).toEqual(call);
    expect(nudged({ model: 'm', stream: true }).body.input).toHaveLength(2);
  });

  test('keeps what the conversation hangs on', () => {
    const kept = { previous_response_id: 'resp_1', conversation: 'conv_1', store: false, background: true };
    expect(nudged({ ...REQUEST, ...kept }).body).toMatchObject(kept);
  });

  test('has what is left of the limit, but no less than providers take', () => {
    expect(nudged({ ...REQUEST, max_output_tokens: 100 }, 40).body.max_output_tokens).toBe(40);
    expect(nudged({ ...REQUEST, max_output_tokens: 100 }, 3).body.max_output_tokens).toBe(16);
    expect(nudged(REQUEST).body).not.toHaveProperty('max_output_tokens');
  });
});
