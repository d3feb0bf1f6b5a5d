import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { YOUNG_GENERATION_BYTES } from '../../src/server/young-generation.ts';

const MODULE = new URL('../../src/server/young-generation.ts', import.meta.url).href;

/**
 * Bytes of the space for short-lived objects before and after much has survived its collections, in a process of its own.
 * V8 lets that space run over its size while it marks the heap, until the next collection: the program ends with one.
 */
function sizes(isBounded: boolean): { readonly before: number; readonly after: number } {
  const program = `
    import { setImmediate } from 'node:timers/promises';
    import { boundYoungGeneration, youngGenerationBytes } from '${MODULE}';
    const before = youngGenerationBytes();
    if (${isBounded}) boundYoungGeneration();
    const kept = [];
    for (let turn = 0; turn < 1500; turn++) {
      for (let n = 0; n < 1000; n++) kept.push({ n, text: [n] });
      await setImmediate();
    }
    gc({ type: 'minor' });
    console.log(JSON.stringify({ before, after: youngGenerationBytes(), kept: kept.length }));`;
  return JSON.parse(
    execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '--eval', program], {
      encoding: 'utf8',
    }),
  ) as { before: number; after: number };
}

test('the space for short-lived objects grows when much of it survives', () => {
  const { before, after } = sizes(false);
  expect(before).toBeLessThan(YOUNG_GENERATION_BYTES);
  expect(after).toBeGreaterThan(4 * YOUNG_GENERATION_BYTES);
});

test('the space for short-lived objects stops growing at its bound once the server asks for that', () => {
  const { before, after } = sizes(true);
  expect(before).toBeLessThan(YOUNG_GENERATION_BYTES);
  expect(after).toBeGreaterThanOrEqual(YOUNG_GENERATION_BYTES);
  expect(after).toBeLessThanOrEqual(2 * YOUNG_GENERATION_BYTES);
});
