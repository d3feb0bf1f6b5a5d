import { describe, expect, test } from 'vitest';
import { isRepeated, type ToolCall } from '../../src/plans/tool-call.ts';
import { call, close, transcriptOf } from './saying.ts';

/** Whether `second` repeats `first`, a settled call. */
function repeats(first: string, second: string, names: readonly [string, string] = ['weather', 'weather']) {
  const transcript = transcriptOf(call(0, names[0], first), close(0), call(1, names[1], second));
  return isRepeated(transcript.toolCalls[1] as ToolCall, transcript.closedCalls);
}

describe('a call repeats a settled one', () => {
  test.each([
    ['as it stands', '{"city":"Paris"}', '{"city":"Paris"}'],
    ['in another order', '{"city":"Paris","days":3}', '{"days":3,"city":"Paris"}'],
    ['with other white space', '{"city":"Paris"}', ' {\n "city": "Paris"\n}'],
    ['with other escapes', '{"city":"São Paulo"}', '{"city":"S\\u00e3o Paulo"}'],
    ['with numbers in another form', '{"days":1.5,"at":100}', '{"days":1.50,"at":1e2}'],
    ['without arguments', '', '{}'],
    ['with arguments that are no object', '[1, 2]', '[1,2]'],
    ['with long numbers, as they stand', '{"id":12345678901234567890}', '{"id":12345678901234567890}'],
  ])('%s', (_, first, second) => {
    expect(repeats(first, second)).toBe(true);
    expect(repeats(second, first)).toBe(true);
  });
});

describe('a call is one of its own', () => {
  test.each([
    ['with another value', '{"city":"Paris"}', '{"city":"Brest"}'],
    ['with a value of another type', '{"days":1}', '{"days":"1"}'],
    ['with a field more', '{"city":"Paris"}', '{"city":"Paris","days":null}'],
    ['with a list in another order', '{"days":[1,2]}', '{"days":[2,1]}'],
    [
      'with numbers that are equal only once they are parsed',
      '{"id":9007199254740993}',
      '{"id":9007199254740992}',
    ],
    ['with fractions that are', '{"at":123456789012.12345}', '{"at":123456789012.12346}'],
    ['with numbers that are too large', '{"at":1e400}', '{"at":null}'],
    ['with numbers that are too small', '{"at":1e-400}', '{"at":0}'],
  ])('%s', (_, first, second) => {
    expect(repeats(first, second)).toBe(false);
    expect(repeats(second, first)).toBe(false);
  });

  test('of another tool', () => {
    expect(repeats('{}', '{}', ['now', 'weather'])).toBe(false);
  });

  test('when the other is not settled', () => {
    const transcript = transcriptOf(call(0, 'now', '{}'), call(1, 'now', '{}'));
    expect(isRepeated(transcript.toolCalls[1] as ToolCall, transcript.closedCalls)).toBe(false);
  });
});
