import { describe, expect, test } from 'vitest';
import { ReceivedEvents } from '../../src/client/received-events.ts';

const WIRE = { path: '/chat/completions', isLast: (payload: string) => payload === '[DONE]' };

function receive(...payloads: readonly string[]): ReceivedEvents {
  const received = new ReceivedEvents(WIRE);
  for (const payload of payloads) received.add(payload);
  return received;
}

describe('the tail', () => {
  test('is what was received, oldest first', () => {
    expect(receive('a', 'b')).toMatchObject({ cursor: 2, tail: ['a', 'b'] });
  });

  test('drops the oldest of too many events', () => {
    const { cursor, tail } = receive(...Array.from({ length: 5_000 }, (_, index) => String(index)));
    expect(cursor).toBe(5_000);
    expect(tail).toHaveLength(4_096);
    expect(tail.at(0)).toBe('904');
    expect(tail.at(-1)).toBe('4999');
  });

  test('drops the oldest of too many characters', () => {
    const large = 'x'.repeat(400_000);
    expect(receive('a', large, large, large)).toMatchObject({ cursor: 4, tail: [large, large] });
  });

  test('keeps the last event whatever its size', () => {
    const large = 'x'.repeat(2_000_000);
    expect(receive('a', large)).toMatchObject({ cursor: 2, tail: [large] });
  });
});

test('the last event of the answer stays the last one', () => {
  expect(receive('{}').isComplete).toBe(false);
  expect(receive('{}', '[DONE]', '{}').isComplete).toBe(true);
});
