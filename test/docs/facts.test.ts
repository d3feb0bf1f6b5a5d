import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { completeConfiguration } from '../../src/config/load.ts';
import { CONFIGURATION_SCHEMA } from '../../src/config/schema.ts';
import type { Schema } from '../../src/config/schema-terms.ts';
import { limitsFor, UNAIDED } from '../../src/interrupts/clocks.ts';
import { ROOT } from './pages.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const { properties }: Schema = CONFIGURATION_SCHEMA;
const keysOf = (section: string): Readonly<Record<string, Schema>> => properties?.[section]?.properties ?? {};

/** Parses `10 s` or `30 min`. */
function milliseconds(duration: string): number {
  const [, count, unit = ''] = /^(\d+) (s|min)$/.exec(duration) ?? [];
  return Number(count) * ({ s: 1000, min: 60_000 }[unit] ?? Number.NaN);
}

/** The cell `column` columns after the one with this key, in one of the page's tables. */
function stated(page: string, key: string, column: number): string {
  const row = read(page)
    .split('\n')
    .find((line) => line.startsWith(`| \`${key}\``));
  return row?.split(' | ')[column]?.trim() ?? `there is no row for ${key}`;
}

describe('what pages repeat of the code', () => {
  test.each(Object.entries(keysOf('clocks')))('docs/clocks.md: %s', (key, schema) => {
    const cell = stated('docs/clocks.md', key, 2);
    if (schema.default !== undefined) expect(milliseconds(cell)).toBe(schema.default);
    else {
      const { clocks } = completeConfiguration({ upstreams: { default: { base_url: 'http://a.test/v1' } } });
      const among = (hasStandIn: boolean) =>
        new Map(Object.entries(limitsFor(clocks, { ...UNAIDED, hasStandIn }))).get(key);
      const [alone = '', aided = ''] = cell.replace(/ with a stand-in$/, '').split('; ');
      expect([milliseconds(alone), milliseconds(aided)]).toEqual([among(false), among(true)]);
    }
  });

  test.each(['drain_ms', 'drain_delay_ms'])('docs/upgrading.md: limits.%s', (key) => {
    expect(milliseconds(stated('docs/upgrading.md', `limits.${key}`, 1))).toBe(
      keysOf('limits')[key]?.default,
    );
  });

  test.each([
    ['a run in a file', 'src/checkpoint/file/frame.ts'],
    ['a run in Redis', 'src/checkpoint/redis/log.ts'],
  ])('docs/upgrading.md: the format of %s', (what, source) => {
    const [, version] = /^(?:export )?const VERSION = (\d+);$/m.exec(read(source)) ?? [];
    expect(read('docs/upgrading.md')).toContain(`| ${what} | ${version}, `);
  });

  test('README.md: what the conformance suite found', () => {
    const gateways: readonly {
      readonly name: string;
      readonly verdicts: Readonly<Record<string, string>>;
    }[] = JSON.parse(read('scripts/conformance/results.json'));
    const counts = gateways.map(({ verdicts }) => {
      const all = Object.values(verdicts).filter((verdict) => verdict !== 'unsupported');
      const whole = all.filter((verdict) => verdict === 'exact' || verdict === 'settled_calls_only').length;
      const honest = all.filter((verdict) => verdict === 'honest_error').length;
      return [whole, honest, all.length - whole - honest];
    });
    const [whole, honest, misled] = ['the whole answer', 'an honest error', 'the application was'].map(
      (start) => {
        const row = read('README.md')
          .split('\n')
          .find((line) => line.startsWith(`| ${start}`));
        return row?.replaceAll('*', '').split('|').slice(2, -1).map(Number);
      },
    );
    expect(gateways.map(({ name }) => name)).toEqual(['direct', 'Holdfast', 'Portkey', 'LiteLLM']);
    expect(counts.map((row) => row[0])).toEqual(whole);
    expect(counts.map((row) => row[1])).toEqual(honest);
    expect(counts.map((row) => row[2])).toEqual(misled);
  });
});
