import { expect, test } from 'vitest';
import { RefusedThoughts } from '../../../../src/proxy/wires/dialects/refused-thoughts.ts';

test('what one upstream refuses is nothing to another', () => {
  const refused = new RefusedThoughts();
  refused.remember('bedrock', 'c2VhbGVk');
  expect(refused.of('bedrock')?.('c2VhbGVk')).toBe(true);
  expect(refused.of('bedrock')?.('b3du')).toBe(false);
  expect(refused.of('anthropic')).toBeUndefined();
});

test('a thought without a seal is like many others, and not remembered', () => {
  const refused = new RefusedThoughts();
  refused.remember('bedrock', '');
  expect(refused.of('bedrock')).toBeUndefined();
});

test('of 20,000 thoughts, the one that was needed longest ago is forgotten', () => {
  const refused = new RefusedThoughts();
  for (let thought = 0; thought < 20_000; thought++) refused.remember('bedrock', `seal ${thought}`);
  const isRefused = refused.of('bedrock');
  expect(isRefused?.('seal 0')).toBe(true);
  refused.remember('bedrock', 'one more');
  expect(['seal 0', 'seal 1', 'seal 2', 'one more'].map((seal) => isRefused?.(seal))).toEqual([
    true,
    false,
    true,
    true,
  ]);
});
