import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tailOf } from '../../src/lib/text.ts';
import { CASES } from '../cases.ts';

describe('the tail of a text', () => {
  test('is all of a short one, and the end of a long one', () => {
    expect(tailOf('short', 400)).toBe('short');
    expect(tailOf(`${'x'.repeat(1000)}end`, 400)).toBe(`${'x'.repeat(397)}end`);
  });

  test('never holds half a character', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '🌊', 'é', '𝄞') });
    fc.assert(
      fc.property(text, fc.nat(20), fc.nat(2), (whole, characters, missing) => {
        const said = whole.slice(0, whole.length - missing);
        const tail = tailOf(said, characters + 1);
        expect(tail.isWellFormed()).toBe(true);
        expect(said).toContain(tail);
        expect(tail.length).toBeGreaterThanOrEqual(Math.min(said.length, characters + 1) - 2);
      }),
      { numRuns: CASES },
    );
  });
});
