import { describe, expect, test } from 'vitest';
import { matches, nextCursor, offsetOf, streamReadIn } from '../../../src/proxy/api/durable-stream.ts';

const INTERVAL_MS = 20_000;
const EPOCH_MS = Date.UTC(2024, 9, 9);

describe('an offset', () => {
  test('is read as it was written', () => {
    for (const position of [
      { seq: 0, epoch: '1' },
      { seq: 17, epoch: '2' },
      { seq: 999_999_999_999_999, epoch: '3-5f3c0a9e' },
    ])
      expect(streamReadIn({ offset: offsetOf(position) })?.start).toEqual(position);
  });

  test('sorts as the events do', () => {
    const offsets = [0, 1, 9, 10, 99, 100, 12_345].map((seq) => offsetOf({ seq, epoch: '1' }));
    expect(offsets.every((offset, index) => index === 0 || offset > String(offsets[index - 1]))).toBe(true);
    expect(offsets.every((offset) => /^[\w.-]+$/.test(offset) && offset !== '-1' && offset !== 'now')).toBe(
      true,
    );
  });

  test('may be the beginning or the end', () => {
    expect(streamReadIn({ offset: '-1' })).toEqual({ start: { seq: 0 }, live: undefined, cursor: undefined });
    expect(streamReadIn({ offset: 'now', live: 'sse', cursor: '7' })).toEqual({
      start: 'end',
      live: 'sse',
      cursor: 7,
    });
  });

  test.each(['', '1', '-2', '0,1', '0 1', 'NOW', '000000000000001', '000000000000001.', ['-1', '-1']])(
    'that this server has not given is refused: %j',
    (offset) => {
      expect(() => streamReadIn({ offset })).toThrow("'offset'");
    },
  );
});

test('a query without the words of the protocol is none of it, and a wait needs an offset', () => {
  expect(streamReadIn({ starting_after: '1' })).toBeUndefined();
  expect(() => streamReadIn({ live: 'long-poll' })).toThrow("'offset'");
  expect(() => streamReadIn({ offset: '-1', live: 'websocket' })).toThrow("'live'");
});

describe('a cursor', () => {
  test('is the number of the interval, unless the reader has that already', () => {
    const now_ms = EPOCH_MS + 1000 * INTERVAL_MS + 1;
    expect(nextCursor(undefined, now_ms, 0)).toBe('1000');
    expect(nextCursor(999, now_ms, 0.5)).toBe('1000');
    expect(nextCursor(1000, now_ms, 0)).toBe('1001');
    expect(nextCursor(1000, now_ms, 0.999)).toBe('1180');
    expect(nextCursor(5000, now_ms, 0)).toBe('5001');
  });

  test('that is no number counts for nothing', () => {
    expect(streamReadIn({ offset: '-1', cursor: 'x' })?.cursor).toBeUndefined();
  });
});

test('an entity tag matches itself, in a list and weakly too, and whatever there is', () => {
  for (const condition of ['"a"', 'W/"a"', '"b", "a"', '*']) expect(matches(condition, '"a"')).toBe(true);
  for (const condition of [undefined, '"b"', 'a']) expect(matches(condition, '"a"')).toBe(false);
});
