import { expect, test } from 'vitest';
import { charactersIn, estimatedMessageTokens, estimatedTokens, tokensIn } from '../../src/plans/tokens.ts';

test.each([
  [0, 0],
  [1, 1],
  [4, 1],
  [5, 2],
])('%i characters are about %i tokens', (characters, tokens) => {
  expect(estimatedTokens(characters)).toBe(tokens);
  expect(estimatedMessageTokens(characters)).toBe(tokens + 3);
});

test.each([
  ['one token each', 10, 45, 10],
  ['as long as tokens get', 10, 80, 10],
  ['several tokens each', 10, 81, 21],
  ['everything in one', 1, 400, 100],
  ['none', 0, 0, 0],
])('deltas of %s', (_, deltas, characters, tokens) => {
  expect(tokensIn({ deltas, characters })).toBe(tokens);
});

test('what a text may have at most is estimated in the same way', () => {
  expect(estimatedTokens(charactersIn(100))).toBe(100);
});
