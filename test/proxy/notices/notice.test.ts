import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Form, type Notice, withNotices } from '../../../src/proxy/notices/notice.ts';

const INSTRUCTION: Notice = { place: 'instructions', text: 'told' };
const RESULT: Notice = { place: 'tool_results', text: 'told' };
const system = { role: 'system', content: 'Be brief.' };
const developer = { role: 'developer', content: 'Be brief.' };
const user = { role: 'user', content: 'Hello.' };
const calls = { role: 'assistant', content: null, tool_calls: [{ id: 'a' }, { id: 'b' }] };
const result = { role: 'tool', tool_call_id: 'a', content: '{"sky":"blue"}' };
const other = { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'none' }] };

const messagesOf = (messages: readonly unknown[], notice: Notice, form: Form) =>
  withNotices({ model: 'm', messages }, [notice], form).messages;

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

test('several notices each go to their place', () => {
  const request = { messages: [system, user, calls, result, other] };
  const { messages } = withNotices(request, [INSTRUCTION, RESULT], 'added');
  expect((messages as { role: string }[]).map(({ role }) => role)).toEqual([
    'system',
    'system',
    'user',
    'assistant',
    'tool',
    'tool',
    'user',
  ]);
});

test('what the client sent is all there, in order and unchanged', () => {
  const message = fc.oneof(
    ...[system, developer, user, calls, result, other].map((each) => fc.constant(each)),
  );
  const request = fc.record({ temperature: fc.double(), seed: fc.integer(), messages: fc.array(message) });
  fc.assert(
    fc.property(request, fc.constantFrom(INSTRUCTION, RESULT), (sent, notice) => {
      const before = structuredClone(sent);
      const { messages, ...rest } = withNotices(sent, [notice], 'added') as typeof sent;
      const own = messages.filter(({ content }) => content !== 'told');
      expect({ ...rest, messages: own }).toEqual(before);
      expect(messages).toHaveLength(own.length + 1);
      expect(sent).toEqual(before);
      expect(withNotices(sent, [notice], 'left_out')).toBe(sent);
    }),
  );
});
