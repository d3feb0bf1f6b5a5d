import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { excessIn, FIELDS_MAX, NESTING_MAX, parsedJson, parseJson, VALUES_MAX } from '../../src/lib/json.ts';
import { CASES, seedOr } from '../cases.ts';

const seed = seedOr(Date.now() % 2 ** 31);
const nestsTooDeep = (text: string) => excessIn(text) === `nests deeper than ${NESTING_MAX} levels`;
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

describe('the nesting of a document', () => {
  test('may be as deep as the limit, and not one level deeper', () => {
    expect(parsedJson(nested(NESTING_MAX))).toBeDefined();
    expect(parsedJson(nested(NESTING_MAX + 1))).toBeUndefined();
    expect(() => parseJson(nested(NESTING_MAX + 1))).toThrow(SyntaxError);
  });

  test.each([100_000, 5_000_000])('of %i levels is found without recursion', (levels) => {
    expect(nestsTooDeep(nested(levels))).toBe(true);
    expect(nestsTooDeep(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)).toBe(true);
  });

  test('is not that of brackets in a string, however its quotes are escaped', () => {
    const brackets = '[{'.repeat(100_000);
    for (const text of [
      brackets,
      `\\"${brackets}`,
      `${brackets}\\`,
      `"${brackets}\\\\`,
      `\\\\\\"${brackets}`,
    ])
      expect(parsedJson(JSON.stringify({ text, after: nested(9) }))).toEqual({ text, after: nested(9) });
  });

  test('is not the number of its brackets', () => {
    const rows = Array.from({ length: 5000 }, () => [[{}], []]);
    expect(parsedJson(JSON.stringify(rows))).toEqual(rows);
  });

  test(`agrees with what a recursive walk counts (seed ${seed})`, () => {
    const depthOf = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? 1 + Math.max(0, ...Object.values(value as object).map(depthOf))
        : 0;
    const hostile = fc.string({ unit: fc.constantFrom('[', ']', '{', '}', '"', '\\', 'a', 'é') });
    const { node } = fc.letrec((tie) => ({
      node: fc.oneof({ maxDepth: 5 }, hostile, fc.array(tie('node')), fc.dictionary(hostile, tie('node'))),
    }));
    const levels = fc.integer({ min: NESTING_MAX - 6, max: NESTING_MAX + 2 });
    fc.assert(
      fc.property(node, levels, hostile, (value, around, beside) => {
        const padding = JSON.stringify(beside);
        const text = `[${padding},`.repeat(around) + JSON.stringify(value) + ']'.repeat(around);
        expect(nestsTooDeep(text)).toBe(around + depthOf(value) > NESTING_MAX);
      }),
      { seed, numRuns: CASES },
    );
  });
});

describe('the values of a document', () => {
  const list = (item: string, count: number) => `[${Array(count).fill(item).join(',')}]`;
  const fields = (count: number) =>
    `{${Array.from({ length: count }, (_, index) => `"${index}":1`).join(',')}}`;

  test('may be as many as the limit, and not one more', () => {
    expect(excessIn(list('1', VALUES_MAX))).toBeUndefined();
    const excess = `has more than ${VALUES_MAX} values`;
    expect(excessIn(list('1', VALUES_MAX + 1))).toBe(excess);
    expect(() => parseJson(list('1', VALUES_MAX + 1))).toThrow(`JSON ${excess}`);
    expect(parsedJson(list('1', VALUES_MAX + 1))).toBeUndefined();
  });

  test.each(['{}', '[]', '""', 'null', '[[],{}]'])('are counted in megabytes of %s', (item) => {
    expect(excessIn(list(item, VALUES_MAX + 1))).toBe(`has more than ${VALUES_MAX} values`);
    expect(excessIn(list(item, VALUES_MAX / 10))).toBeUndefined();
  });

  test('may have as many names as the limit, and not one more', () => {
    const excess = `has more than ${FIELDS_MAX} fields`;
    expect(excessIn(fields(FIELDS_MAX))).toBeUndefined();
    expect(excessIn(fields(FIELDS_MAX + 1))).toBe(excess);
    expect(excessIn(list('{"a":1}', FIELDS_MAX + 1))).toBe(excess);
    expect(parsedJson(fields(FIELDS_MAX + 1))).toBeUndefined();
  });

  test('are not the commas, colons and brackets of its strings', () => {
    for (const text of [',[{'.repeat(VALUES_MAX), '\\",'.repeat(VALUES_MAX), '"":\\"'.repeat(FIELDS_MAX + 1)])
      expect(excessIn(JSON.stringify({ text, after: [1, 2] }))).toBeUndefined();
  });
});
