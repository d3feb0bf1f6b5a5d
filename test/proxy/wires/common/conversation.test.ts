import { describe, expect, it } from 'vitest';
import { inputOf } from '../../../../src/proxy/wires/common/conversation.ts';
import type { WireRequest } from '../../../../src/proxy/wires/common/wire.ts';
import { WIRES } from '../../../../src/proxy/wires/registry.ts';

const conversationOn = (wire: 'chat_completions' | 'messages' | 'responses') => {
  const { conversation } = WIRES[wire];
  if (!conversation) throw new Error('there is none');
  return conversation;
};
const request = (fields: object): WireRequest => ({ model: 'model', stream: true, ...fields });
const said = (label: string, text: string) => ({ label, text });
const output = (id: string, text: string) => ({ label: `result of ${id}`, text, isOutput: true });

it('a prompt is no conversation', () => {
  expect(WIRES.completions.conversation).toBeUndefined();
});

describe('a chat', () => {
  const chat = conversationOn('chat_completions');
  const call = { id: 'call_1', type: 'function', function: { name: 'tides', arguments: '{"port":"Brest"}' } };

  it.each([
    ['a question', { role: 'user', content: 'When?' }, 'user', [said('user', 'When?')]],
    [
      'a question with a picture',
      { role: 'user', content: [{ type: 'text', text: 'Where?' }, { type: 'image_url' }, 'odd'] },
      'user',
      [said('user', 'Where?\n[image_url]\n')],
    ],
    ['an answer', { role: 'assistant', content: 'At six.' }, 'model', [said('assistant', 'At six.')]],
    [
      'calls',
      { role: 'assistant', content: null, tool_calls: [call, 'odd'] },
      'model',
      [said('assistant calls tides as call_1', '{"port":"Brest"}')],
    ],
    [
      'a call of the first interface for functions',
      { role: 'assistant', content: '', function_call: { name: 'tides', arguments: '{}' } },
      'model',
      [said('assistant calls tides as function tides', '{}')],
    ],
    [
      'a result',
      { role: 'tool', tool_call_id: 'call_1', content: 'six' },
      'result',
      [output('call_1', 'six')],
    ],
    [
      'a result of that',
      { role: 'function', name: 'tides', content: 'six' },
      'result',
      [output('function tides', 'six')],
    ],
    ['instructions', { role: 'developer', content: 'Be brief.' }, 'pinned', []],
    ['what is unknown', { role: 'oracle', content: 'Beware.' }, 'pinned', []],
    [
      'a call of nothing',
      { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
      'model',
      [said('assistant calls  as call_1', '')],
    ],
  ])('has %s', (_, message, kind, sayings) => {
    expect(chat.partOf(message)).toMatchObject({ kind, sayings });
  });

  it('identifies calls by their ids, or by their names', () => {
    expect(chat.partOf({ role: 'assistant', tool_calls: [call] }).calls).toEqual(['call_1']);
    expect(chat.partOf({ role: 'tool', tool_call_id: 'call_1' }).results).toEqual(['call_1']);
    const legacy = { role: 'assistant', function_call: { name: 'tides' } };
    expect(chat.partOf(legacy).calls).toEqual(chat.partOf({ role: 'function', name: 'tides' }).results);
  });

  it('adds to what the user says, in the form that it has', () => {
    expect(chat.joined({ role: 'user', name: 'Ann', content: 'When?' }, 'So far.')).toEqual({
      role: 'user',
      name: 'Ann',
      content: 'When?\n\nSo far.',
    });
    expect(chat.joined({ role: 'user', content: [{ type: 'image_url' }] }, 'So far.')).toEqual({
      role: 'user',
      content: [{ type: 'image_url' }, { type: 'text', text: 'So far.' }],
    });
  });
});

describe('messages', () => {
  const messages = conversationOn('messages');
  const use = { type: 'tool_use', id: 'toolu_1', name: 'tides', input: { port: 'Brest' } };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'six' };

  it.each([
    ['a question', { role: 'user', content: 'When?' }, 'user', [said('user', 'When?')]],
    ['nothing', { role: 'user', content: '' }, 'user', []],
    [
      'thoughts and a call',
      {
        role: 'assistant',
        content: [{ type: 'thinking', thinking: 'Hm.' }, { type: 'redacted_thinking' }, use],
      },
      'model',
      [said('assistant calls tides as toolu_1', '{"port":"Brest"}')],
    ],
    ['a result', { role: 'user', content: [result] }, 'result', [output('toolu_1', 'six')]],
    [
      'a result in blocks',
      { role: 'user', content: [{ ...result, content: [{ type: 'text', text: 'six' }, { type: 'image' }] }] },
      'result',
      [output('toolu_1', 'six\n[image]')],
    ],
    [
      'a result and a question',
      { role: 'user', content: [result, { type: 'text', text: 'And then?' }] },
      'user',
      [output('toolu_1', 'six'), said('user', 'And then?')],
    ],
    [
      'what the provider has looked up',
      {
        role: 'assistant',
        content: [
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
          { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
        ],
      },
      'model',
      [said('assistant calls web_search as srvtoolu_1', '{}'), output('srvtoolu_1', '')],
    ],
    ['what is unknown', { role: 'system', content: 'Beware.' }, 'pinned', [said('system', 'Beware.')]],
    ['a picture', { role: 'user', content: [{ type: 'image' }] }, 'user', [said('user', '[image]')]],
  ])('have %s', (_, message, kind, sayings) => {
    expect(messages.partOf(message)).toMatchObject({ kind, sayings });
  });

  it('add to what the user says', () => {
    const added = { type: 'text', text: 'So far.' };
    const first = { type: 'text', text: 'When?' };
    expect(messages.joined({ role: 'user', content: 'When?' }, 'So far.')).toEqual({
      role: 'user',
      content: [first, added],
    });
    expect(messages.joined({ role: 'user', content: [first] }, 'So far.')).toEqual({
      role: 'user',
      content: [first, added],
    });
  });
});

describe('the input of a response', () => {
  const responses = conversationOn('responses');

  it.each([
    ['a question', { role: 'user', content: 'When?' }, 'user', [said('user', 'When?')]],
    [
      'a question in parts',
      { role: 'user', content: [{ type: 'input_text', text: 'Where?' }, { type: 'input_image' }] },
      'user',
      [said('user', 'Where?\n[input_image]')],
    ],
    [
      'an answer, or that there is none',
      {
        type: 'message',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'At six.' },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
      'model',
      [said('assistant', 'At six.\nNo.')],
    ],
    ['thoughts', { type: 'reasoning', summary: [] }, 'model', []],
    [
      'a call',
      { type: 'function_call', call_id: 'call_1', name: 'tides', arguments: '{}' },
      'model',
      [said('assistant: function_call tides call_1', '{}')],
    ],
    [
      'a result',
      { type: 'function_call_output', call_id: 'call_1', output: 'six' },
      'result',
      [output('call_1', 'six')],
    ],
    [
      'a result in parts',
      { type: 'custom_tool_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'six' }] },
      'result',
      [output('call_1', 'six')],
    ],
    [
      'a picture of a screen',
      { type: 'computer_call_output', call_id: 'call_1', output: { type: 'computer_screenshot' } },
      'result',
      [output('call_1', '[computer_screenshot]')],
    ],
    [
      'a consent',
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
      'result',
      [output('mcpr_1', 'true')],
    ],
    [
      'what was looked up',
      { type: 'web_search_call', action: { query: 'tides' } },
      'model',
      [said('assistant: web_search_call', '{"query":"tides"}')],
    ],
    ['instructions', { role: 'developer', content: 'Be brief.' }, 'pinned', []],
    ['what the provider has compressed', { type: 'compaction', encrypted_content: 'x' }, 'pinned', []],
    ['what is no item', 'odd', 'model', [said('assistant: ', '')]],
  ])('has %s', (_, item, kind, sayings) => {
    expect(responses.partOf(item)).toMatchObject({ kind, sayings });
  });

  it('identifies calls by their ids', () => {
    expect(responses.partOf({ type: 'mcp_approval_request', id: 'mcpr_1' }).calls).toEqual(['mcpr_1']);
    expect(
      responses.partOf({ type: 'mcp_approval_response', approval_request_id: 'mcpr_1' }).results,
    ).toEqual(['mcpr_1']);
  });

  it.each([
    ['text', { input: 'When?' }],
    ['nothing', {}],
    ['after another one', { input: [], previous_response_id: 'resp_1' }],
    ['within a conversation', { input: [], conversation: { id: 'conv_1' } }],
    ['with what is only named', { input: [{ type: 'item_reference', id: 'rs_1' }] }],
  ])('is no conversation if it is %s', (_, fields) => {
    expect(responses.messagesOf(request(fields))).toBeUndefined();
  });

  it('is one if there is nothing before', () => {
    const fields = { input: [{ role: 'user', content: 'When?' }], previous_response_id: null };
    expect(responses.messagesOf(request(fields))).toBe(fields.input);
  });

  it('adds to what the user says, in the form that it has', () => {
    expect(responses.joined({ role: 'user', content: 'When?' }, 'So far.')).toEqual({
      role: 'user',
      content: 'When?\n\nSo far.',
    });
    expect(responses.joined({ role: 'user', content: [] }, 'So far.')).toEqual({
      role: 'user',
      content: [{ type: 'input_text', text: 'So far.' }],
    });
  });
});

describe('what the client has said since the model spoke last', () => {
  const question = { role: 'user', content: 'When?' };
  const answer = { role: 'assistant', content: 'At six.' };
  const system = { role: 'system', content: 'Be brief.' };
  const result = { role: 'tool', tool_call_id: 'call_1', content: 'six' };
  const item = { type: 'function_call_output', call_id: 'call_1', output: 'six' };
  const block = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'six' }] };
  const call = { type: 'function_call', call_id: 'call_1', name: 'tides', arguments: '{}' };

  it.each([
    ['all of a first request', 'chat_completions', { messages: [system, question] }, [system, question]],
    ['results', 'chat_completions', { messages: [question, answer, result, result] }, [result, result]],
    ['an answer it has begun', 'chat_completions', { messages: [question, answer] }, [question, answer]],
    [
      'the same after another answer',
      'messages',
      { messages: [question, answer, block, answer] },
      [block, answer],
    ],
    ['nothing of an empty request', 'chat_completions', { messages: [] }, []],
    ['a text', 'responses', { input: 'When?' }, [question]],
    ['an item', 'responses', { input: [question, call, item] }, [item]],
    [
      'an item that continues what the provider keeps',
      'responses',
      { input: [item], previous_response_id: 'r' },
      [item],
    ],
  ] as const)('is %s', (_case, wire, fields, expected) => {
    expect(inputOf(conversationOn(wire), request(fields))).toEqual(expected);
  });
});
