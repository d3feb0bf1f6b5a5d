import { expect, it } from 'vitest';
import { ModelPattern } from '../../src/config/model-pattern.ts';

it.each([
  ['gpt-*', 'gpt-4o', true],
  ['gpt-*', 'gpt-', true],
  ['gpt-*', 'my-gpt-4o', false],
  ['gpt-4o', 'gpt-4o', true],
  ['gpt-4o', 'gpt-4o-mini', false],
  ['gpt-4.1', 'gpt-4x1', false],
  ['*', '', true],
  ['*', 'any/thing:at all\n', true],
  ['**', 'anything', true],
  ['*-mini', 'o3-mini', true],
  ['*-mini', 'o3-mini-high', false],
  ['*-mini*', 'o3-mini-high', true],
  ['a*a', 'a', false],
  ['a*b*a', 'aba', true],
  ['a*b*b', 'ab', false],
  ['a*bc*c', 'abc', false],
  ['a(b)[c]{d}+?^$|\\', 'a(b)[c]{d}+?^$|\\', true],
  ['Llama', 'llama', false],
])('%s for %j: %s', (pattern, model, matches) => {
  expect(new ModelPattern(pattern).matches(model)).toBe(matches);
});

it('twenty stars take no longer for a name that nearly matches', () => {
  // A regular expression would take minutes here.
  expect(new ModelPattern('*a'.repeat(20)).matches(`${'a'.repeat(255)}b`)).toBe(false);
});
