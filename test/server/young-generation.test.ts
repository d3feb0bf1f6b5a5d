import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const MODULE = new URL('../../src/server/young-generation.ts', import.meta.url).href;

// The second half is taken at the first collection.
const HALVES = 2;

/**
 * Bytes of the space for short-lived objects before and after much has survived its collections, in a process of its own.
 * V8 lets that space run over its size while it marks the heap, until the next collection: the program ends with one.
 */
function sizes(isKept: boolean): { readonly before: number; readonly after: number } {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { keepYoungGenerationSize } from '${MODULE}';
    const size = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size;
    const before = size();
    if (${isKept}) keepYoungGenerationSize();
    const kept = [];
    for (let n = 0; n < 1_500_000; n++) kept.push({ n, text: [n] });
    gc({ type: 'minor' });
    console.log(JSON.stringify({ before, after: size(), kept: kept.length }));`;
  return JSON.parse(
    execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '--eval', program], {
      encoding: 'utf8',
    }),
  ) as { before: number; after: number };
}

test('the space for short-lived objects grows when much of it survives', () => {
  const { before, after } = sizes(false);
  expect(after).toBeGreaterThan(HALVES * before);
});

test('the space for short-lived objects keeps its size once the server asks for that', () => {
  const { before, after } = sizes(true);
  expect(after).toBeLessThanOrEqual(HALVES * before);
});
