import { expect, test } from 'vitest';
import { comparableJson } from '../../src/plans/tool-call.ts';

test.each([
  ['white space', '{ "a" : [ 1,\n2 ] }', '{"a":[1,2]}'],
  [
    'the order of fields',
    '{"b":1,"a":{"d":[{"f":1,"e":2}],"c":null}}',
    '{"a":{"c":null,"d":[{"e":2,"f":1}]},"b":1}',
  ],
  ['escapes', '{"\\u0061":"\\u00e9\\/"}', '{"a":"é/"}'],
  ['how a number is written', '[1.0,-0,1e2]', '[1,0,100]'],
  ['fields that come twice', '{"a":1,"a":2}', '{"a":2}'],
  ['fields that begin alike', '{"a,b":"c","a":"b,c"}', '{"a":"b,c","a,b":"c"}'],
  [
    'names that objects have',
    '{"toString":1,"__proto__":{"b":1,"a":2}}',
    '{"__proto__":{"a":2,"b":1},"toString":1}',
  ],
])('says nothing of %s', (_, text, canonical) => {
  expect(comparableJson(text)).toBe(canonical);
  expect(comparableJson(canonical)).toBe(canonical);
});

test('keeps the order of a list', () => {
  expect(comparableJson('[2,1]')).not.toBe(comparableJson('[1,2]'));
});

test.each(['', '{"a":', 'kelp', '{}{}'])('leaves %j, which is no document, as it is', (text) => {
  expect(comparableJson(text)).toBe(text);
});
