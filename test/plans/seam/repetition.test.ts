import { describe, expect, test } from 'vitest';
import { commonPrefixLength, endsUniquely, Repetition } from '../../../src/plans/seam/repetition.ts';

test.each([
  ['', '', 0],
  ['abc', '', 0],
  ['abc', 'abd', 2],
  ['abc', 'abcd', 3],
  ['abc', 'xabc', 0],
  ['🙂', '🙃', 1],
])('%j and %j begin with %i common units', (a, b, length) => {
  expect(commonPrefixLength(a, b)).toBe(length);
  expect(commonPrefixLength(b, a)).toBe(length);
});

describe('a head that says again what was delivered', () => {
  const followed = (delivered: string, head: string) => {
    const repetition = new Repetition(delivered);
    for (const character of head.split('')) repetition.push(character);
    const { alignments, beginning, isGoingOn } = repetition;
    return { alignments, beginning, isGoingOn };
  };

  test.each([
    ['abc', 'cde', [1], 0],
    ['abcabc', 'abcabcd', [3, 6], 6],
    ['xabcabc', 'abcd', [3], 0],
    ['abc', 'xyz', [], 0],
    ['abcd', 'bc', [], 0],
    ['haha', 'ha!', [2], 2],
    ['0, 0, 0, ', '0, 0, 1', [3, 6], 6],
  ])('of %j, %j comes to its end after %j characters', (delivered, head, alignments, beginning) => {
    expect(followed(delivered, head)).toMatchObject({ alignments, beginning });
  });

  test('continues as long as it may say more of it, and for the character that shows whether it ends', () => {
    expect(followed('abcd', '').isGoingOn).toBe(true);
    expect(followed('abcd', 'bc').isGoingOn).toBe(true);
    expect(followed('abcd', 'bcd').isGoingOn).toBe(true);
    expect(followed('abcd', 'bcde').isGoingOn).toBe(false);
    expect(followed('abcd', 'x').isGoingOn).toBe(false);
  });

  test('is known from the beginning of a long answer and from its last 8,000 characters', () => {
    const delivered = Array.from({ length: 3000 }, (_, index) => `${index * 7919}, `).join('');
    expect(followed(delivered, delivered.slice(0, 500)).beginning).toBe(500);
    expect(followed(delivered, `${delivered.slice(-8000)}x`).alignments).toContain(8000);
    expect(followed(delivered, `${delivered.slice(-8001)}x`).alignments).not.toContain(8001);
  });
});

test.each([
  ['one two', 3, true],
  ['two two', 3, false],
  ['aaaa', 2, false],
  ['aaaa', 4, true],
])('the end of %j, %i characters, stands only there: %j', (text, length, unique) => {
  expect(endsUniquely(text, length)).toBe(unique);
});
