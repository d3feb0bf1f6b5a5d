import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const MODULE = new URL('../../src/server/compiler-memory.ts', import.meta.url).href;

/**
 * The memory in bytes that compilers still hold in a separate process after a busy start that had each of 300 functions
 * compiled.
 */
function heldBytes(isFreedAtOnce: boolean): number {
  const program = `
    import { setImmediate } from 'node:timers/promises';
    import { getHeapStatistics } from 'node:v8';
    import { freeCompilerMemoryAtOnce } from '${MODULE}';
    if (${isFreedAtOnce}) freeCompilerMemoryAtOnce();
    const statement = (n) => \`sum += fields.a * numbers[\${n % 7}]; if (sum > 1e9) sum -= \${n};\`;
    const body = Array.from({ length: 40 }, (_, n) => statement(n)).join('');
    const compiled = Array.from({ length: 300 }, (_, n) =>
      new Function('fields', 'numbers', \`let sum = \${n}; \${body} return sum;\`));
    for (let turn = 0; turn < 60; turn++) {
      for (const each of compiled) for (let n = 0; n < 20; n++) each({ a: 1 }, [1, 2, 3, 4, 5, 6, 7]);
      await setImmediate();
    }
    console.log(getHeapStatistics().malloced_memory);`;
  return Number(
    execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' }),
  );
}

test('the memory of compilations is freed while the process is busy', () => {
  const byDefault = heldBytes(false);
  expect(heldBytes(true)).toBeLessThan(byDefault / 4);
});
