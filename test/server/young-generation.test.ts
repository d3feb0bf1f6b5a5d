import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { YOUNG_GENERATION_BYTES } from '../../src/server/young-generation.ts';

const MODULE = new URL('../../src/server/young-generation.ts', import.meta.url).href;

interface Sizes {
  /** Bytes when the process starts. */
  readonly before: number;
  /** Bytes right after each of a few collections, once much has survived earlier ones. */
  readonly settled: readonly number[];
}

/**
 * Measures the space for short-lived objects in a separate process. It reads the sizes right after a collection,
 * because V8 lets the space exceed its limit while it marks the heap. One reading isn't enough: V8 also shrinks the
 * space after a collection if the program has allocated little in the meantime, as happens on a busy machine, and then
 * lets it grow again.
 */
function sizes(isBounded: boolean): Sizes {
  const program = `
    import { setImmediate } from 'node:timers/promises';
    import { boundYoungGeneration, youngGenerationBytes } from '${MODULE}';
    const before = youngGenerationBytes();
    if (${isBounded}) boundYoungGeneration();
    const kept = [];
    const settled = [];
    for (let turn = 1; turn <= 1500; turn++) {
      for (let n = 0; n < 1000; n++) kept.push({ n, text: [n] });
      await setImmediate();
      if (turn <= 1000 || turn % 50 > 0) continue;
      gc({ type: 'minor' });
      settled.push(youngGenerationBytes());
    }
    console.log(JSON.stringify({ before, settled, kept: kept.length }));`;
  return JSON.parse(
    execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '--eval', program], {
      encoding: 'utf8',
    }),
  ) as Sizes;
}

test('the space for short-lived objects grows when much of it survives', () => {
  const { before, settled } = sizes(false);
  expect(before).toBeLessThan(YOUNG_GENERATION_BYTES);
  expect(Math.max(...settled)).toBeGreaterThan(4 * YOUNG_GENERATION_BYTES);
});

test('the space for short-lived objects stops growing at its bound once the server asks for that', () => {
  const { before, settled } = sizes(true);
  expect(before).toBeLessThan(YOUNG_GENERATION_BYTES);
  expect(Math.max(...settled)).toBeGreaterThanOrEqual(YOUNG_GENERATION_BYTES);
  expect(Math.max(...settled)).toBeLessThanOrEqual(2 * YOUNG_GENERATION_BYTES);
});
