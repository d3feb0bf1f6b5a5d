import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { YOUNG_GENERATION_MAX_BYTES } from '../../src/server/young-generation.ts';

const MODULE = new URL('../../src/server/young-generation.ts', import.meta.url).href;

/** Allocations of objects that all survive: their number in each turn of the event loop. */
interface Load {
  readonly turns: number;
  readonly objects: number;
  readonly pause_ms: number;
}

/** Collections take most of the time. */
const BUSY: Load = { turns: 3000, objects: 1000, pause_ms: 0 };
/** The same kind of objects, but collections take little of the time. */
const QUIET: Load = { turns: 60, objects: 2000, pause_ms: 40 };

/**
 * The largest size in bytes of the space for short-lived objects in a separate process. It's read right after a
 * collection, because V8 lets the space exceed its limit while it marks the heap, and several times in the last third,
 * because V8 also shrinks the space if the program has allocated little in the meantime, as happens on a busy machine.
 */
function settledBytes({ turns, objects, pause_ms }: Load, isBounded: boolean): number {
  const program = `
    import { setImmediate, setTimeout } from 'node:timers/promises';
    import { boundYoungGeneration, youngGenerationBytes } from '${MODULE}';
    if (${isBounded}) boundYoungGeneration();
    const kept = [];
    let settled = 0;
    for (let turn = 1; turn <= ${turns}; turn++) {
      for (let n = 0; n < ${objects}; n++) kept.push({ n, text: [n] });
      await (${pause_ms} > 0 ? setTimeout(${pause_ms}) : setImmediate());
      if (turn <= ${turns} * 2 / 3 || turn % ${Math.round(turns / 30)} > 0) continue;
      gc({ type: 'minor' });
      settled = Math.max(settled, youngGenerationBytes());
    }
    console.log(JSON.stringify({ settled, kept: kept.length }));`;
  const words = ['--expose-gc', '--input-type=module', '--eval', program];
  const { settled } = JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' }));
  return settled;
}

test('the space for short-lived objects grows past its bound while the server has not asked for one', () => {
  expect(settledBytes(BUSY, false)).toBeGreaterThan(YOUNG_GENERATION_MAX_BYTES);
});

test('the space for short-lived objects grows up to its bound while collections take much of the time', () => {
  const settled = settledBytes(BUSY, true);
  expect(settled).toBeGreaterThan(YOUNG_GENERATION_MAX_BYTES / 2);
  expect(settled).toBeLessThanOrEqual(YOUNG_GENERATION_MAX_BYTES);
});

test('the space for short-lived objects stays small while collections take little time, although all objects survive', () => {
  const unbounded = settledBytes(QUIET, false);
  expect(settledBytes(QUIET, true)).toBeLessThanOrEqual(unbounded / 2);
});
