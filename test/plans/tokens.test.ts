import { expect, test } from 'vitest';
import {
  cachedTokens,
  charactersIn,
  estimatedMessageTokens,
  estimatedTokens,
  tokensIn,
} from '../../src/plans/tokens.ts';

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

test.each<[string, object, number]>([
  ['chat completions', { prompt_tokens_details: { cached_tokens: 1024 } }, 1024],
  ['responses', { input_tokens_details: { cached_tokens: 2048 } }, 2048],
  ['DeepSeek', { prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 900 }, 64],
  ['messages, read', { cache_read_input_tokens: 3, cache_creation_input_tokens: 0 }, 3],
  ['messages, put there', { cache_read_input_tokens: 0, cache_creation_input_tokens: 5 }, 5],
  ['a provider without a cache', {}, 0],
  ['a provider that says odd things', { prompt_tokens_details: null, prompt_cache_hit_tokens: -1 }, 0],
])('cached tokens as reported by %s', (_, details, tokens) => {
  const usage = { prompt_tokens: 4000, completion_tokens: 1, total_tokens: 4001, ...details };
  expect(cachedTokens(usage)).toBe(tokens);
});
