import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { TIERS } from './tiers.ts';

const cwd = fileURLToPath(new URL('..', import.meta.url));

test('every test file is in exactly one tier', () => {
  const all = Object.values(TIERS).flatMap(({ include, exclude }) => globSync(include, { cwd, exclude }));
  expect(all.sort()).toEqual(globSync('test/**/*.test.ts', { cwd }).sort());
});

test.each(Object.values(TIERS).flatMap(({ include }) => include))('%s names files that are there', (glob) => {
  expect(globSync(glob, { cwd })).not.toEqual([]);
  for (const [, alternatives = ''] of glob.matchAll(/\{([^}]*)\}/g))
    for (const one of alternatives.split(','))
      expect(globSync(glob.replace(`{${alternatives}}`, one), { cwd }), one).not.toEqual([]);
});
