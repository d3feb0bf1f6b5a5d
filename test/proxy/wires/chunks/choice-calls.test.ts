import { expect, test, vi } from 'vitest';
import { ChoiceCalls } from '../../../../src/proxy/wires/chunks/chat-tool-calls.ts';

const SCHEMAS = new Map([
  ['forecast', { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }],
]);

const chunk = (
  choice: number,
  id: string | undefined,
  name: string | undefined,
  text: string,
  index = 0,
) => ({
  choices: [
    {
      index: choice,
      delta: { tool_calls: [{ index, ...(id && { id }), function: { name, arguments: text } }] },
    },
  ],
});

test('the calls of several choices are distinguished, however their fragments are interleaved', () => {
  const calls = new ChoiceCalls(SCHEMAS);
  for (const part of [
    chunk(0, 'call_a', 'forecast', '{"city":'),
    chunk(1, 'call_b', 'forecast', '{"ci'),
    chunk(0, undefined, undefined, '"Brest"}'),
    chunk(1, undefined, undefined, 'ty":"Lor'),
    chunk(0, 'call_c', 'forecast', '{"city":"Brest"}', 1),
    { choices: [{ index: 1, delta: { content: 'x' } }, null] },
    { choices: 'none' },
  ])
    calls.read(part);
  expect(calls.settled).toMatchObject([
    { id: 'call_a', name: 'forecast', arguments: '{"city":"Brest"}' },
    { id: 'call_c', name: 'forecast', arguments: '{"city":"Brest"}' },
  ]);
  expect(calls.settled).toHaveLength(2);
});

test('a call of a choice is parsed once, and not for every word of any choice', () => {
  const calls = new ChoiceCalls(SCHEMAS);
  calls.read(chunk(0, 'call_a', 'forecast', `{"city":"${'}'.repeat(10_000)}`));
  calls.read(chunk(1, 'call_b', 'forecast', '{"town":"Brest"}'));
  const word = (choice: number) => ({ choices: [{ index: choice, delta: { content: 'x' } }] });
  const parse = vi.spyOn(JSON, 'parse');
  try {
    for (let count = 0; count < 100; count++) expect(calls.read(word(0))).toEqual([]);
    // Once to check that it's an object, and once to find that it violates its schema.
    expect(parse.mock.calls.length).toBeLessThanOrEqual(2);
    expect(calls.read(word(1))).toMatchObject([{ id: 'call_b', arguments: '{"town":"Brest"}' }]);
    expect(calls.read(word(1))).toEqual([]);
  } finally {
    parse.mockRestore();
  }
});

test('what the calls of choices hold is counted', () => {
  const calls = new ChoiceCalls(SCHEMAS);
  calls.read(chunk(0, 'call_a', 'forecast', '海'.repeat(1_000)));
  expect(calls.held_bytes).toBeGreaterThanOrEqual(3_000);
  for (let index = 1; index <= 1_000; index++) calls.read(chunk(0, `call_${index}`, 'f', '', index));
  expect(calls.held_bytes).toBeGreaterThan(1_000_000);
});
