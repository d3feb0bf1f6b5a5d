import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsedExactly } from '../../src/lib/json.ts';
import { CASES } from '../cases.ts';

test.each([
  '{"id":12345678901234567890,"price":1.0,"tiny":1e-400,"huge":1E400,"none":-0,"few":[0.10,5]}',
  '{"__proto__":{"price":1.0},"text":"1.0"}',
  '[1.50]',
  '1.0',
])('is written as it was read: %s', (text) => {
  expect(JSON.stringify(parsedExactly(text))).toBe(text);
});

test('is what JSON is, where that says all', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(JSON.stringify(parsedExactly(text))).toBe(JSON.stringify(JSON.parse(text)));
    }),
    { numRuns: CASES },
  );
});

test('throws for what is no JSON', () => {
  expect(() => parsedExactly('{')).toThrow(SyntaxError);
});
