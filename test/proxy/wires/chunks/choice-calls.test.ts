import { expect, test } from 'vitest';
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
