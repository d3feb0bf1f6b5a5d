import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SettledCall } from '../../../../src/plans/tool-call.ts';
import { chatNotices } from '../../../../src/proxy/wires/chunks/chat-conversation.ts';
import type { Notice } from '../../../../src/proxy/wires/common/conversation.ts';
import { CASES } from '../../../cases.ts';

const INSTRUCTION: Notice = { place: 'instructions', text: 'told' };
const RESULT: Notice = { place: 'tool_results', text: 'told' };
const system = { role: 'system', content: 'Be brief.' };
const developer = { role: 'developer', content: 'Be brief.' };
const user = { role: 'user', content: 'Hello.' };
const calls = { role: 'assistant', content: null, tool_calls: [{ id: 'a' }, { id: 'b' }] };
const result = { role: 'tool', tool_call_id: 'a', content: '{"sky":"blue"}' };
const other = { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'none' }] };

const messagesOf = (messages: readonly unknown[], notice: Notice, form: 'added' | 'joined') =>
  chatNotices.withNotice({ model: 'm', messages }, notice, form).messages;

describe('instructions as a message of their own', () => {
  const told = { role: 'system', content: 'told' };

  test.each<[string, readonly unknown[], readonly unknown[]]>([
    ['follow the system message', [system, user], [system, told, user]],
    ['follow all of the leading ones', [system, system, user, system], [system, system, told, user, system]],
    ['come first when there is none', [user], [told, user]],
    ['come first when a system message comes later', [user, system], [told, user, system]],
    ['are all there is to say after instructions alone', [system], [system, told]],
    [
      'speak as the developer where one does',
      [developer, user],
      [developer, { role: 'developer', content: 'told' }, user],
    ],
  ])('%s', (_, messages, expected) => {
    expect(messagesOf(messages, INSTRUCTION, 'added')).toEqual(expected);
  });
});

describe('instructions joined to others', () => {
  test('are the end of the last leading message', () => {
    const joined = { role: 'system', content: 'Be brief.\n\ntold' };
    expect(messagesOf([system, system, user], INSTRUCTION, 'joined')).toEqual([system, joined, user]);
  });

  test('are a part of it if it has parts', () => {
    const parts = { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] };
    const joined = { role: 'system', content: [...parts.content, { type: 'text', text: 'told' }] };
    expect(messagesOf([parts, user], INSTRUCTION, 'joined')).toEqual([joined, user]);
  });

  test('are a message of their own when there is nothing to join', () => {
    expect(messagesOf([user], INSTRUCTION, 'joined')).toEqual([{ role: 'system', content: 'told' }, user]);
  });
});

describe('a notice about tool results', () => {
  const told = { role: 'user', content: 'told' };

  test.each<[string, readonly unknown[], readonly unknown[]]>([
    ['follows the last of them', [user, calls, result, other], [user, calls, result, other, told]],
    [
      'comes before what the client says itself',
      [user, calls, result, other, user],
      [user, calls, result, other, told, user],
    ],
    [
      'comes before an answer that was begun',
      [user, calls, result, { role: 'assistant', content: 'It' }],
      [user, calls, result, told, { role: 'assistant', content: 'It' }],
    ],
  ])('%s', (_, messages, expected) => {
    expect(messagesOf(messages, RESULT, 'added')).toEqual(expected);
  });

  test('can be the end of the last one, whatever that is made of', () => {
    expect(messagesOf([user, calls, result], RESULT, 'joined')).toEqual([
      user,
      calls,
      { ...result, content: '{"sky":"blue"}\n\ntold' },
    ]);
    expect(messagesOf([user, calls, result, other], RESULT, 'joined')).toEqual([
      user,
      calls,
      result,
      { ...other, content: [...other.content, { type: 'text', text: 'told' }] },
    ]);
  });
});

test.each([
  ['without messages', { messages: 'Hello.' }, INSTRUCTION],
  ['without the results that a notice is about', { messages: [system, user] }, RESULT],
])('a request %s is left alone', (_, request, notice) => {
  expect(chatNotices.withNotice(request, notice, 'added')).toBe(request);
});

test('what the client sent is all there, in order and unchanged', () => {
  const message = fc.oneof(
    ...[system, developer, user, calls, result, other].map((each) => fc.constant(each)),
  );
  const request = fc.record({ temperature: fc.double(), seed: fc.integer(), messages: fc.array(message) });
  fc.assert(
    fc.property(request, fc.constantFrom(INSTRUCTION, RESULT), (sent, notice) => {
      const before = structuredClone(sent);
      const { messages, ...rest } = chatNotices.withNotice(sent, notice, 'added') as typeof sent;
      const own = messages.filter(({ content }) => content !== 'told');
      expect({ ...rest, messages: own }).toEqual(before);
      const hasPlace = notice === INSTRUCTION || own.some(({ role }) => role === 'tool');
      expect(messages).toHaveLength(own.length + (hasPlace ? 1 : 0));
      expect(sent).toEqual(before);
    }),
    { numRuns: CASES },
  );
});

const PARIS: SettledCall = { id: 'call_a', name: 'forecast', arguments: '{"city":"Paris","days":2}' };
const BREST: SettledCall = { id: 'call_b', name: 'forecast', arguments: '{"city":"Brest"}' };
const callOf = ({ id, name, arguments: text }: SettledCall) => ({
  id,
  type: 'function',
  function: { name, arguments: text },
});
const turn = (...calls: SettledCall[]) => ({ role: 'assistant', tool_calls: calls.map(callOf) });
const resultOf = ({ id }: SettledCall) => ({ role: 'tool', tool_call_id: id, content: 'rain' });

describe('the calls that a request brings results of', () => {
  test.each<[string, readonly unknown[], readonly SettledCall[]]>([
    [
      'are those of the last turn',
      [user, turn(PARIS, BREST), resultOf(PARIS), resultOf(BREST)],
      [PARIS, BREST],
    ],
    ['are only those that have one', [user, turn(PARIS, BREST), resultOf(BREST)], [BREST]],
    ['may be followed by the user', [user, turn(PARIS), resultOf(PARIS), user], [PARIS]],
    [
      'may be followed by an answer that the client has begun',
      [user, turn(PARIS), resultOf(PARIS), { role: 'assistant', content: 'It' }],
      [PARIS],
    ],
    [
      'are none once the model has gone on',
      [user, turn(PARIS), resultOf(PARIS), { role: 'assistant', content: 'It rains.' }, user],
      [],
    ],
    ['are none of earlier turns', [turn(BREST), resultOf(BREST), turn(PARIS), resultOf(PARIS)], [PARIS]],
    ['are none without results', [user, turn(PARIS)], []],
    ['are none without a turn', [resultOf(PARIS)], []],
    [
      'are none in a request that is beyond understanding',
      [null, 7, { role: 'assistant', tool_calls: 'no' }, { role: 'tool', tool_call_id: 7 }],
      [],
    ],
    ['are none in messages that are none', 'Hello.' as unknown as readonly unknown[], []],
  ])('%s', (_, messages, calls) => {
    expect(chatNotices.answeredCalls({ messages })).toEqual(calls);
  });
});
