import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/plans/canonical-json.ts';
import { CASES, seedOr } from '../cases.ts';

const SEED = seedOr(20_261_122);

test.each([
  ['white space', ' { "a" : [ 1,\n2 ] }\r\n', '{"a":[1,2]}'],
  [
    'the order of fields',
    '{"b":1,"a":{"d":[{"f":1,"e":2}],"c":null}}',
    '{"a":{"c":null,"d":[{"e":2,"f":1}]},"b":1}',
  ],
  ['escapes', '{"\\u0061":"\\u00e9\\/\\"\\\\"}', '{"a":"é/\\"\\\\"}'],
  ['fields that come twice', '{"a":1,"b":0,"a":2}', '{"a":2,"b":0}'],
  ['fields that begin alike', '{"a,b":"c","a":"b,c"}', '{"a":"b,c","a,b":"c"}'],
  [
    'names that objects have',
    '{"toString":1,"__proto__":{"b":1,"a":2}}',
    '{"__proto__":{"a":2,"b":1},"toString":1}',
  ],
  ['brackets and quotes in strings', '{"b":"}]\\"{,:","a":"\\\\"}', '{"a":"\\\\","b":"}]\\"{,:"}'],
  ['what is empty', '{ "a":{ } , "b" : [ ], "c":"" }', '{"a":{},"b":[],"c":""}'],
  ['a document that is no object', ' "kelp" ', '"kelp"'],
])('says nothing of %s', (_, text, canonical) => {
  expect(canonicalJson(text)).toBe(canonical);
  expect(canonicalJson(canonical)).toBe(canonical);
});

test('keeps the order of a list', () => {
  expect(canonicalJson('[2,1]')).not.toBe(canonicalJson('[1,2]'));
});

test.each([
  ['1.0', '1'],
  ['-0', '0'],
  ['1e2', '100'],
  ['9007199254740993', '9007199254740992'],
  ['12345678901234567890', '12345678901234567891'],
])('keeps numbers as written: %s is not %s', (one, other) => {
  expect(canonicalJson(`{"n":${one}}`)).toBe(`{"n":${one}}`);
  expect(canonicalJson(`{"n":${one}}`)).not.toBe(canonicalJson(`{"n":${other}}`));
});

describe('fields that are left out', () => {
  const omitted = new Set(['stream', 'request_id']);

  test('are those of the outermost object only', () => {
    const text = '{"stream":true,"a":{"stream":false},"request_id":{"x":[1]},"b":[{"request_id":1}]}';
    expect(canonicalJson(text, omitted)).toBe('{"a":{"stream":false},"b":[{"request_id":1}]}');
  });

  test('are recognised in other escapes, and not by how they begin', () => {
    expect(canonicalJson('{"\\u0073tream":true,"streamed":1}', omitted)).toBe('{"streamed":1}');
  });
});

test('is indifferent to how deeply a document is nested', () => {
  const levels = 200_000;
  const text = `${'[{"a": '.repeat(levels)}1${'}]'.repeat(levels)}`;
  expect(canonicalJson(text)).toBe(text.replaceAll(' ', ''));
});

test('of any document written in any way is the same text, which says the same', () => {
  const strings = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 6 }).map((text) => text.toWellFormed()),
    fc.constantFrom('"', '\\', '\\"', '\\\\"', '}', ']', ',', ':', '\u2028', 'a'),
    fc.constantFrom('/', '\\/', '\\u', '\n', '\t/', '\u0001', '\b\f\r', '\x7f', '\\u0061'),
  );
  const numbers = fc.constantFrom('0', '-0', '1.0', '1e400', '9007199254740993', '-1.5E-7');
  const { document } = fc.letrec<{ document: Written }>((tie) => ({
    document: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.record({
        kind: fc.constant('scalar' as const),
        text: fc.oneof(numbers, fc.constantFrom('null', 'true')),
      }),
      fc.record({ kind: fc.constant('string' as const), value: strings }),
      fc.record({ kind: fc.constant('list' as const), items: fc.array(tie('document'), { maxLength: 4 }) }),
      fc.record({
        kind: fc.constant('object' as const),
        fields: fc.uniqueArray(fc.tuple(strings, tie('document')), {
          maxLength: 4,
          selector: ([name]) => name,
        }),
      }),
    ),
  }));
  const property = fc.property(document, fc.infiniteStream(fc.nat(5)), (written, choices) => {
    expect(canonicalJson(write(written, choices))).toBe(canonical(written));
  });
  fc.assert(property, { seed: SEED, numRuns: CASES });
});

type Written =
  | { readonly kind: 'scalar'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'list'; readonly items: readonly Written[] }
  | { readonly kind: 'object'; readonly fields: readonly (readonly [string, Written])[] };

/** The canonical form. */
function canonical(document: Written): string {
  switch (document.kind) {
    case 'scalar':
      return document.text;
    case 'string':
      return JSON.stringify(document.value);
    case 'list':
      return `[${document.items.map(canonical).join(',')}]`;
    case 'object': {
      const fields = document.fields.map(([name, value]) => [JSON.stringify(name), canonical(value)]);
      return `{${fields.sort(([one = ''], [other = '']) => (one < other ? -1 : 1)).map((field) => field.join(':'))}}`;
    }
  }
}

/** One of the many other ways to write it. */
function write(document: Written, choices: Iterator<number>): string {
  const choose = () => choices.next().value ?? 0;
  const space = () => ['', ' ', '\n', '\t ', '', ''][choose()];
  const string = (value: string) => {
    const choice = choose();
    if (choice < 2) return JSON.stringify(value);
    if (choice < 4) return JSON.stringify(value).replaceAll('/', '\\/');
    return `"${value.split('').map(escaped).join('')}"`;
  };
  switch (document.kind) {
    case 'scalar':
      return document.text;
    case 'string':
      return string(document.value);
    case 'list':
      return `[${document.items.map((item) => space() + write(item, choices) + space()).join(',')}]`;
    case 'object': {
      const fields = choose() < 2 ? document.fields : [...document.fields].reverse();
      const texts = fields.map(
        ([name, value]) => `${space()}${string(name)}${space()}:${space()}${write(value, choices)}${space()}`,
      );
      return `{${texts.join(',')}}`;
    }
  }
}

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
