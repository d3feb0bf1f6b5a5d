import { expect, test } from 'vitest';
import { simulate } from '../simulation/simulate.ts';

test('an uncut answer', async () => {
  const result = await simulate({ parts: [{ text: 'Hello wonderful world, how are you?' }] });
  console.log(result.client.body, result.outcome, result.journal.text, result.stream);
  expect(result.stream.text).toBe('Hello wonderful world, how are you?');
});
test('cut', async () => {
  const result = await simulate({
    parts: [{ text: 'Hello wonderful world, how are you?' }],
    faults: [{ kind: 'reset', at: { event: 4 } }],
  });
  console.log(
    result.client.body,
    result.outcome,
    result.journal.text,
    result.requests.map((r) => JSON.stringify(r.body)),
    result.stream,
  );
  expect(result.stream.text).toBe('Hello wonderful world, how are you?');
});
test('tools', async () => {
  const result = await simulate({
    parts: [
      { text: 'Let me see.' },
      { tool: { id: 'call_a', name: 'weather', arguments: '{"city":"Paris"}' } },
      { tool: { id: 'call_b', name: 'weather', arguments: '{"city":"Rome"}' } },
    ],
    faults: [{ kind: 'reset', at: { event: 10 } }],
  });
  console.log(
    result.client.body,
    result.outcome,
    result.journal,
    result.requests.map((r) => JSON.stringify(r.body)),
    result.stream,
  );
});
