import { describe, expect, test } from 'vitest';
import type { Notice } from '../../../../src/proxy/wires/common/conversation.ts';
import { responsesNotices } from '../../../../src/proxy/wires/responses/conversation.ts';

const INSTRUCTION: Notice = { place: 'instructions', text: 'told' };
const RESULT: Notice = { place: 'tool_results', text: 'told' };
const told = (role: string) => ({ type: 'message', role, content: 'told' });
const system = { role: 'system', content: 'Be brief.' };
const developer = {
  type: 'message',
  role: 'developer',
  content: [{ type: 'input_text', text: 'Be brief.' }],
};
const user = { role: 'user', content: [{ type: 'input_text', text: 'Hello.' }] };
const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] };
const callOf = (call_id: string, city = 'Paris') => ({
  type: 'function_call',
  id: `fc_${call_id}`,
  call_id,
  name: 'forecast',
  arguments: JSON.stringify({ city }),
});
const resultOf = (call_id: string, output: unknown = 'rain') => ({
  type: 'function_call_output',
  call_id,
  output,
});

const put = (request: object, notice: Notice, form: 'added' | 'joined') =>
  responsesNotices.withNotice({ model: 'm', ...request }, notice, form);

describe('instructions as an item of their own', () => {
  test.each<[string, unknown, readonly unknown[]]>([
    [
      'come before a text, which becomes one',
      'Hello.',
      [told('system'), { role: 'user', content: 'Hello.' }],
    ],
    ['come first when there are no others', [user], [told('system'), user]],
    ['follow the others', [system, system, user, system], [system, system, told('system'), user, system]],
    ['speak as the developer where one does', [developer, user], [developer, told('developer'), user]],
    ['are all there is to say after instructions alone', [system], [system, told('system')]],
    [
      'come between no call and its result',
      [resultOf('a'), resultOf('b'), user],
      [resultOf('a'), resultOf('b'), told('system'), user],
    ],
    ['follow results that are all there is', [resultOf('a')], [resultOf('a'), told('system')]],
    ['are all there is where a stored prompt says the rest', null, [told('system')]],
    ['are all there is where a stored prompt says everything', undefined, [told('system')]],
  ])('%s', (_, input, expected) => {
    const instructions = 'Be kind.';
    const request = { instructions, ...(input !== undefined && { input }) };
    expect(put(request, INSTRUCTION, 'added')).toEqual({ model: 'm', instructions, input: expected });
  });
});

describe('instructions joined to others', () => {
  test.each<[string, unknown, unknown]>([
    ['are the end of those for the whole request', 'Be kind.', 'Be kind.\n\ntold'],
    ['are all of those for the whole request', undefined, 'told'],
    ['are all of those for the whole request, which were none', null, 'told'],
  ])('%s', (_, instructions, expected) => {
    const request = { input: 'Hello.', ...(instructions !== undefined && { instructions }) };
    expect(put(request, INSTRUCTION, 'joined')).toEqual({
      model: 'm',
      input: 'Hello.',
      instructions: expected,
    });
  });

  test('are the end of the last leading item', () => {
    const input = [system, system, user];
    const joined = { role: 'system', content: 'Be brief.\n\ntold' };
    expect(put({ input, instructions: 'Be kind.' }, INSTRUCTION, 'joined')).toEqual({
      model: 'm',
      input: [system, joined, user],
      instructions: 'Be kind.',
    });
  });

  test('are a part of it if it has parts', () => {
    const content = [...developer.content, { type: 'input_text', text: 'told' }];
    expect(put({ input: [developer, user] }, INSTRUCTION, 'joined').input).toEqual([
      { ...developer, content },
      user,
    ]);
  });

  test.each([
    ['has no content', { input: [{ role: 'system' }, user] }, 1],
    ['are a list', { input: [user], instructions: [system] }, 0],
  ])('are an item of their own where what is there %s', (_, request, index) => {
    const { input } = put(request, INSTRUCTION, 'joined') as { input: unknown[] };
    expect(input[index]).toEqual(told('system'));
    expect(input.toSpliced(index, 1)).toEqual(request.input);
  });
});

describe('a notice about results', () => {
  const turn = [user, said, callOf('a'), callOf('b')];

  test.each<[string, readonly unknown[], readonly unknown[]]>([
    [
      'follows the last of them',
      [...turn, resultOf('a'), resultOf('b')],
      [...turn, resultOf('a'), resultOf('b'), told('user')],
    ],
    [
      'comes before what the client says itself',
      [...turn, resultOf('a'), resultOf('b'), user],
      [...turn, resultOf('a'), resultOf('b'), told('user'), user],
    ],
    ['follows one that is all there is', [resultOf('a')], [resultOf('a'), told('user')]],
  ])('%s', (_, input, expected) => {
    expect(put({ input }, RESULT, 'added').input).toEqual(expected);
  });

  test.each<[string, unknown, unknown]>([
    ['text', 'rain', 'rain\n\ntold'],
    [
      'parts',
      [{ type: 'input_text', text: 'rain' }],
      [
        { type: 'input_text', text: 'rain' },
        { type: 'input_text', text: 'told' },
      ],
    ],
  ])('can be the end of the last one, of %s', (_, output, expected) => {
    const { input } = put({ input: [...turn, resultOf('a'), resultOf('b', output)] }, RESULT, 'joined');
    expect(input).toEqual([...turn, resultOf('a'), resultOf('b', expected)]);
  });

  test('is an item of its own when the last one has no room for it', () => {
    const shot = { type: 'computer_call_output', call_id: 'a', output: { type: 'computer_screenshot' } };
    expect(put({ input: [shot] }, RESULT, 'joined').input).toEqual([shot, told('user')]);
  });
});

test.each([
  ['nobody can make sense of', 7, INSTRUCTION],
  ['nobody can make sense of', 7, RESULT],
  ['has no results that a notice could be about', [system, user], RESULT],
])('input that %s is left alone: %j', (_, input, notice) => {
  const request = { model: 'm', input };
  expect(responsesNotices.withNotice(request, notice, 'added')).toBe(request);
});

describe('the calls that a request brings results of', () => {
  const delivered = (id: string, city = 'Paris') => ({
    id,
    name: 'forecast',
    arguments: JSON.stringify({ city }),
  });
  const custom = { type: 'custom_tool_call', call_id: 'c', name: 'edit', input: 'a "b"' };

  test.each<[string, unknown, readonly object[]]>([
    [
      'are those of the last turn',
      [user, said, callOf('a'), callOf('b'), resultOf('a'), resultOf('b')],
      [delivered('a'), delivered('b')],
    ],
    ['are only those that have one', [user, callOf('a'), callOf('b'), resultOf('b'), user], [delivered('b')]],
    ['are none once the model has gone on', [user, callOf('a'), resultOf('a'), said, user], []],
    [
      'are none of earlier turns',
      [callOf('a'), resultOf('a'), callOf('b', 'Brest'), resultOf('b')],
      [delivered('b', 'Brest')],
    ],
    ['are none without results', [user, callOf('a')], []],
    ['are none in a text', 'Hello.', []],
    ['are none in what is beyond understanding', [null, 7, { type: 'function_call_output', call_id: 7 }], []],
    [
      'may be custom ones, of free text',
      [custom, { type: 'custom_tool_call_output', call_id: 'c', output: 'done' }],
      [{ id: 'c', name: 'edit', arguments: '"a \\"b\\""' }],
    ],
    ['may be the provider’s to know', [{ type: 'item_reference', id: 'fc_a' }, resultOf('a')], [{ id: 'a' }]],
    [
      'may be of a kind that comes back in other words',
      [
        { type: 'shell_call', call_id: 's' },
        { type: 'shell_call_output', call_id: 's', output: [] },
      ],
      [{ id: 's' }],
    ],
  ])('%s', (_, input, expected) => {
    expect(responsesNotices.answeredCalls({ input })).toEqual(expected);
  });

  test('are known by the answer that the request continues from', () => {
    const request = { previous_response_id: 'resp_1', input: [resultOf('a')] };
    expect(responsesNotices.answeredCalls(request)).toEqual([{ id: 'a', answer: 'resp_1' }]);
    expect(responsesNotices.answeredCalls({ ...request, previous_response_id: 7 })).toEqual([{ id: 'a' }]);
  });
});
