import { describe, expect, test } from 'vitest';
import { messagesRequest } from './wires/messages-request.ts';
import { responsesRequest } from './wires/responses-request.ts';

const user = { role: 'user', content: 'Hello.' };

describe('a conversation on /v1/messages', () => {
  const text = { type: 'text', text: 'And now?' };
  const cached = { ...text, cache_control: { type: 'ephemeral' } };
  const callOf = (id: string) => ({ type: 'tool_use', id, name: 'now', input: {} });
  const resultOf = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'noon' });
  const turn = (role: string, ...content: object[]) => ({ role, content });
  const called = [user, turn('assistant', callOf('a'), callOf('b'))];
  const check = (request: object) =>
    messagesRequest({ model: 'm', max_tokens: 100, messages: [user], ...request });

  test.each<[string, object]>([
    ['with instructions', { system: 'Be brief.' }],
    ['with instructions in blocks', { system: [cached, text] }],
    ['with results', { messages: [...called, turn('user', resultOf('a'), resultOf('b'))] }],
    ['with text after results', { messages: [...called, turn('user', resultOf('a'), resultOf('b'), text)] }],
    [
      'with results in two messages',
      { messages: [...called, turn('user', resultOf('a')), turn('user', resultOf('b'))] },
    ],
    ['with an answer that was begun', { messages: [user, { role: 'assistant', content: 'It' }] }],
  ])('%s is accepted', (_, request) => {
    expect(check(request)).not.toBeNull();
  });

  test.each<[string, object, string]>([
    [
      'with a system message',
      { messages: [{ role: 'system', content: 'x' }, user] },
      'Unexpected role "system"',
    ],
    ['with a tool message', { messages: [user, { role: 'tool', content: 'x' }] }, 'Unexpected role "tool"'],
    [
      'that begins with an answer',
      { messages: [{ role: 'assistant', content: 'x' }, user] },
      'first message',
    ],
    ['with instructions that are none', { system: { text: 'x' } }, 'valid list'],
    ['with empty instructions', { system: [{ type: 'text', text: '' }] }, 'non-empty'],
    ['with a field of its own', { system: [{ ...text, holdfast: 1 }] }, 'holdfast: Extra inputs'],
    ['with an empty message', { messages: [{ role: 'user', content: '' }] }, 'non-empty content'],
    ['with a message without blocks', { messages: [{ role: 'user', content: [] }] }, 'non-empty content'],
    ['with a message that is none', { messages: ['Hello.'] }, 'should be an object'],
    ['with content that is none', { messages: [{ role: 'user', content: 7 }] }, 'a string or a list'],
    [
      'with text before results',
      { messages: [...called, turn('user', text, resultOf('a'), resultOf('b'))] },
      'come first',
    ],
    [
      'with text between results',
      { messages: [...called, turn('user', resultOf('a'), text, resultOf('b'))] },
      'come first',
    ],
    ['with a result that is missing', { messages: [...called, turn('user', resultOf('a'))] }, 'tool_use b'],
    ['with a result of no call', { messages: [turn('user', resultOf('a'))] }, 'unexpected tool_use_id a'],
    [
      'with a result twice',
      { messages: [...called, turn('user', resultOf('a'), resultOf('a'), resultOf('b'))] },
      'single result',
    ],
    ['with a call by the user', { messages: [turn('user', callOf('a'))] }, 'is not expected'],
    ['with a result by the model', { messages: [user, turn('assistant', resultOf('a'))] }, 'is not expected'],
    [
      'with a call whose input is text',
      { messages: [user, turn('assistant', { ...callOf('a'), input: '{}' })] },
      'tool_use.input',
    ],
    [
      'with a result of odd content',
      { messages: [...called, turn('user', { ...resultOf('a'), content: [{ type: 'input_text' }] })] },
      'is not expected',
    ],
    [
      'with too many marks for the cache',
      { system: [cached, cached, cached], messages: [turn('user', cached, cached)] },
      'maximum of 4',
    ],
  ])('%s is refused', (_, request, message) => {
    expect(() => check(request)).toThrow(message);
  });
});

describe('the input on /v1/responses', () => {
  const callOf = (call_id: string) => ({ type: 'function_call', call_id, name: 'now', arguments: '{}' });
  const resultOf = (call_id: string, output: unknown = 'noon') => ({
    type: 'function_call_output',
    call_id,
    output,
  });
  const check = (request: object) => responsesRequest({ model: 'm', input: [user], ...request });

  test.each<[string, object]>([
    ['of text', { input: 'Hello.', instructions: 'Be brief.' }],
    [
      'with messages of all roles',
      { input: ['system', 'developer', 'user', 'assistant'].map((role) => ({ role, content: 'x' })) },
    ],
    ['with results', { input: [user, callOf('a'), resultOf('a')] }],
    [
      'with a result of a custom tool',
      {
        input: [
          { type: 'custom_tool_call', call_id: 'a', name: 'edit', input: 'x' },
          { type: 'custom_tool_call_output', call_id: 'a', output: 'done' },
        ],
      },
    ],
    [
      'with results in parts',
      { input: [callOf('a'), resultOf('a', [{ type: 'input_text', text: 'noon' }])] },
    ],
    ['with a result of a call that is kept', { input: [resultOf('a')], previous_response_id: 'resp_1' }],
    [
      'with a result of a call that is referred to',
      { input: [{ type: 'item_reference', id: 'fc_a' }, resultOf('a')] },
    ],
    [
      'with what the model has said',
      {
        input: [
          {
            type: 'message',
            id: 'msg_1',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'x', annotations: [] }],
          },
        ],
      },
    ],
  ])('%s is accepted', (_, request) => {
    expect(check(request)).not.toBeNull();
  });

  test.each<[string, object, string]>([
    ['beside a field that is not known', { messages: [user] }, "Unknown parameter: 'messages'"],
    ['beside instructions that are a list', { instructions: [user] }, 'instructions'],
    ['with a tool message', { input: [{ role: 'tool', content: 'x' }] }, "Invalid value: 'tool'"],
    ['with an item that is none', { input: ['Hello.'] }, 'expected an object'],
    ['with an item of an unknown type', { input: [{ type: 'tool_result' }] }, 'tool_result'],
    [
      'with a part of another wire',
      { input: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] },
      'Invalid part',
    ],
    [
      'with a part that the model says, said to it',
      { input: [{ role: 'user', content: [{ type: 'output_text', text: 'x' }] }] },
      'Invalid part',
    ],
    ['with content that is none', { input: [{ role: 'user', content: 7 }] }, 'Invalid type'],
    ['with a message with a field of its own', { input: [{ ...user, holdfast: 1 }] }, 'input[0].holdfast'],
    [
      'with a result with a field of its own',
      { input: [callOf('a'), { ...resultOf('a'), name: 'now' }] },
      'input[1].name',
    ],
    ['with a result of no call', { input: [resultOf('a')] }, 'No tool call found'],
    ['with a result before its call', { input: [resultOf('a'), callOf('a')] }, 'No tool call found'],
    ['with a result twice', { input: [callOf('a'), resultOf('a'), resultOf('a')] }, 'Duplicate'],
    ['with a call without a result', { input: [callOf('a'), user] }, 'No tool output found'],
    ['with a call without arguments', { input: [{ ...callOf('a'), arguments: {} }] }, 'Missing'],
    ['with a result of nothing', { input: [{ type: 'function_call_output', output: 'x' }] }, 'Missing'],
  ])('%s is refused', (_, request, message) => {
    expect(() => check(request)).toThrow(message);
  });
});
