import { describe, expect, test } from 'vitest';
import type { Notice } from '../../../../src/proxy/wires/common/conversation.ts';
import { messagesNotices } from '../../../../src/proxy/wires/messages/conversation.ts';

const INSTRUCTION: Notice = { place: 'instructions', text: 'told' };
const RESULT: Notice = { place: 'tool_results', text: 'told' };
const TOLD = { type: 'text', text: 'told' };
const user = { role: 'user', content: 'Hello.' };
const PARIS = { type: 'tool_use', id: 'toolu_a', name: 'forecast', input: { city: 'Paris' } };
const BREST = { type: 'tool_use', id: 'toolu_b', name: 'forecast', input: { city: 'Brest' } };
const calls = { role: 'assistant', content: [{ type: 'text', text: 'I look.' }, PARIS, BREST] };
const resultOf = ({ id }: { id: string }, content: unknown = 'rain') => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
});
const results = (...content: unknown[]) => ({ role: 'user', content });
const text = { type: 'text', text: 'And now?' };
const CACHED = { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } };

const put = (request: object, notice: Notice, form: 'added' | 'joined') =>
  messagesNotices.withNotice({ model: 'm', messages: [user], ...request }, notice, form);

describe('instructions', () => {
  const begun = { role: 'assistant', content: 'It' };

  test.each<[string, readonly unknown[], readonly unknown[]]>([
    ['are the end of what the user says', [user], [{ ...user, content: 'Hello.\n\ntold' }]],
    ['are a block after the last one', [user, calls, results(CACHED)], [user, calls, results(CACHED, TOLD)]],
    [
      'follow the results of tools',
      [user, calls, results(resultOf(PARIS), resultOf(BREST))],
      [user, calls, results(resultOf(PARIS), resultOf(BREST), TOLD)],
    ],
    [
      'come before an answer that the client has begun',
      [results(CACHED), begun],
      [results(CACHED, TOLD), begun],
    ],
  ])('%s, so that everything before stays in the cache', (_, messages, expected) => {
    const request = { system: [CACHED], messages };
    expect(put(request, INSTRUCTION, 'added')).toEqual({ model: 'm', system: [CACHED], messages: expected });
  });

  test('stay where they are in a request for the rest', () => {
    const asked = { model: 'm', messages: [user, begun, { role: 'user', content: 'And now?' }] };
    const ours = [begun, { role: 'user', content: 'Go on.' }];
    const rest = { ...asked, messages: [...asked.messages, ...ours] };
    const told = messagesNotices.withNotice(asked, INSTRUCTION, 'added').messages as object[];
    const again = messagesNotices.withNotice(rest, INSTRUCTION, 'added', asked).messages;
    expect(again).toEqual([...told, ...ours]);
  });

  test.each<[string, unknown, unknown]>([
    ['are all of them where there are none', undefined, 'told'],
    ['are all of them where these are empty', '', 'told'],
    ['follow those that are a text', 'Be brief.', 'Be brief.\n\ntold'],
    ['are a block after the others, which stay as they are', [CACHED], [CACHED, TOLD]],
    ['leave alone what makes no sense', 7, 7],
  ])('%s, when the user says nothing or the provider refuses more of it', (_, system, expected) => {
    const fields = { model: 'm', ...(system !== undefined && { system }) };
    for (const messages of ['Hello.', [begun], [{ role: 'user' }], [null]])
      expect(put({ ...fields, messages }, INSTRUCTION, 'added')).toEqual({
        ...fields,
        messages,
        system: expected,
      });
    const messages = [user];
    expect(put({ ...fields, messages }, INSTRUCTION, 'joined')).toEqual({
      ...fields,
      messages,
      system: expected,
    });
  });
});

describe('a notice about tool results', () => {
  const answered = results(resultOf(PARIS), resultOf(BREST));

  test.each<[string, readonly unknown[], readonly unknown[]]>([
    ['follows the last of them', [user, calls, answered], [user, calls, results(...answered.content, TOLD)]],
    [
      'comes before what the client says itself',
      [user, calls, results(...answered.content, text)],
      [user, calls, results(...answered.content, TOLD, text)],
    ],
    [
      'is not mistaken for what comes after an answer that was begun',
      [user, calls, answered, { role: 'assistant', content: 'It' }, { role: 'user', content: 'Go on.' }],
      [
        user,
        calls,
        results(...answered.content, TOLD),
        { role: 'assistant', content: 'It' },
        { role: 'user', content: 'Go on.' },
      ],
    ],
    ['is not told where there are none', [user, calls], [user, calls]],
  ])('%s', (_, messages, expected) => {
    expect(put({ messages }, RESULT, 'added').messages).toEqual(expected);
  });

  test.each<[string, unknown, unknown]>([
    ['text', 'rain', 'rain\n\ntold'],
    ['blocks', [text], [text, TOLD]],
    ['nothing', undefined, 'told'],
  ])('can be the end of the last one, of %s', (_, content, expected) => {
    const { content: _none, ...empty } = resultOf(BREST);
    const last = content === undefined ? empty : resultOf(BREST, content);
    const { messages } = put({ messages: [user, calls, results(resultOf(PARIS), last)] }, RESULT, 'joined');
    expect(messages).toEqual([user, calls, results(resultOf(PARIS), resultOf(BREST, expected))]);
  });

  test('is a block of its own when the last one has no room for it', () => {
    const odd = resultOf(BREST, { odd: true });
    const { messages } = put({ messages: [user, calls, results(odd)] }, RESULT, 'joined');
    expect(messages).toEqual([user, calls, results(odd, TOLD)]);
  });
});

describe('the calls that a request brings results of', () => {
  const paris = { id: 'toolu_a', name: 'forecast', arguments: '{"city":"Paris"}' };
  const brest = { id: 'toolu_b', name: 'forecast', arguments: '{"city":"Brest"}' };

  test.each<[string, unknown, readonly object[]]>([
    ['are those of the last turn', [user, calls, results(resultOf(PARIS), resultOf(BREST))], [paris, brest]],
    ['are only those that have one', [user, calls, results(resultOf(BREST), text)], [brest]],
    [
      'may come in several messages',
      [user, calls, results(resultOf(PARIS)), results(resultOf(BREST))],
      [paris, brest],
    ],
    [
      'may be followed by an answer that the client has begun',
      [user, calls, results(resultOf(PARIS)), { role: 'assistant', content: 'It' }],
      [paris],
    ],
    [
      'are none once the model has gone on',
      [user, calls, results(resultOf(PARIS)), { role: 'assistant', content: 'It rains.' }, user],
      [],
    ],
    ['are none without results', [user, calls], []],
    ['are none without a turn', [results(resultOf(PARIS))], []],
    ['are none in messages that are none', 'Hello.', []],
    [
      'are none in messages that are beyond understanding',
      [
        null,
        { role: 'assistant', content: [null, { type: 'tool_use', id: 7 }] },
        { role: 'user', content: [7] },
      ],
      [],
    ],
  ])('%s', (_, messages, expected) => {
    expect(messagesNotices.answeredCalls({ messages })).toEqual(expected);
  });

  test('may have no input', () => {
    const { input: _, ...bare } = PARIS;
    const messages = [{ role: 'assistant', content: [bare] }, results(resultOf(PARIS))];
    expect(messagesNotices.answeredCalls({ messages })).toEqual([{ ...paris, arguments: '{}' }]);
  });
});
