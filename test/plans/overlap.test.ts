import { describe, expect, test } from 'vitest';
import { commonPrefixLength, isPeriodic, isSeparator, tailOverlap } from '../../src/plans/overlap.ts';

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

test.each([
  ['', 'abc', ''],
  ['abc', '', ''],
  ['abc', 'xyz', ''],
  ['abc', 'cde', 'c'],
  ['abcabc', 'abcabcd', 'abcabc'],
  ['xabcabc', 'abcd', 'abc'],
  ['abc', 'abc', 'abc'],
  ['abcd', 'bc', ''],
])('the end of %j that %j begins with is %j', (tail, head, overlap) => {
  expect(tailOverlap(tail, head)).toBe(overlap);
});

describe('text that repeats itself', () => {
  test.each([
    '--',
    '------',
    'hahaha',
    'hahah',
    '|---|---|',
    '0.00, 0.00, 0.00',
    'null,\nnull,\n',
    'abcdefghabcdefgh',
  ])('%j', (text) => {
    expect(isPeriodic(text)).toBe(true);
  });

  test.each([
    '',
    '-',
    'ab',
    'aba',
    'abcab',
    'the quick brown fox',
    'the fox and the fox and',
    'abcdefghiabcdefghi',
  ])('not: %j', (text) => {
    expect(isPeriodic(text)).toBe(false);
  });
});

test.each([
  [' ', true],
  ['\n', true],
  ['.', true],
  ['-', true],
  ['—', true],
  ['a', false],
  ['é', false],
  ['\u0301', false],
  ['北', false],
  ['7', false],
  ['_', false],
])('a word cannot go on through %j: %s', (character, expected) => {
  expect(isSeparator(character)).toBe(expected);
});
