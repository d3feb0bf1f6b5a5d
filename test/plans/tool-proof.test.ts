import { describe, expect, test } from 'vitest';
import { normalisedArguments, parses, proofOf, type ToolCall } from '../../src/plans/tool-call.ts';
import { SCHEMAS } from './saying.ts';

const callOf = (name: string, text: string, followed?: ToolCall['followed']): ToolCall => ({
  index: 0,
  id: 'call_0',
  name,
  arguments: text,
  state: 'open',
  followed,
});

const proven = (name: string, text: string, followed?: ToolCall['followed']) =>
  proofOf(callOf(name, text, followed), SCHEMAS);

describe('arguments alone', () => {
  test.each([
    ['satisfy the schema', 'weather', '{"city":"Paris"}'],
    ['satisfy it with blanks around', 'weather', ' {"city":"Paris"}\n'],
    ['are none, spelt out, and the tool takes none', 'now', '{}'],
  ])('prove it where they %s', (_, name, text) => {
    expect(proven(name, text)).toBe(1);
  });

  test.each([
    ['nothing has come', 'weather', ''],
    ['nothing has come, and the tool takes none', 'now', ''],
    ['a blank has come, and the tool takes none', 'now', ' '],
    ['half of them have come', 'weather', '{"city":"Pa'],
    ['a placeholder has come', 'weather', '{}'],
    ['a required one is missing', 'weather', '{"days":1}'],
    ['one is of the wrong type', 'weather', '{"city":1}'],
    ['they are a number', 'weather', '1'],
    ['they are a string', 'weather', '"Paris"'],
    ['they are a list', 'weather', '["Paris"]'],
    ['they are null', 'weather', 'null'],
    ['they are two glued together', 'weather', '{"city":"Paris"}{"city":"Rome"}'],
    ['the tool is not declared', 'unknown', '{"city":"Paris"}'],
  ])('prove nothing where %s', (_, name, text) => {
    expect(proven(name, text)).toBeUndefined();
  });
});

describe('what came after the call', () => {
  test.each<[string, string, string, 'text' | 'call', 2 | undefined]>([
    ['text, after whole arguments', 'weather', '{"city":"Paris"}', 'text', 2],
    ['text, after arguments that the schema refuses', 'weather', '{"days":1}', 'text', 2],
    ['text, after a placeholder', 'weather', '{}', 'text', 2],
    ['text, after nothing', 'now', '', 'text', 2],
    ['text, after a blank', 'now', ' ', 'text', 2],
    ['text, after half the arguments', 'weather', '{"city":"Pa', 'text', undefined],
    ['text, after a list', 'weather', '[]', 'text', undefined],
    ['another call, after whole arguments', 'weather', '{"city":"Paris"}', 'call', 2],
    ['another call, after a call of an unknown tool', 'unknown', '{"city":"Paris"}', 'call', 2],
    ['another call, after a placeholder', 'weather', '{}', 'call', undefined],
    ['another call, after nothing', 'weather', '', 'call', undefined],
    ['another call, after none, of a tool that takes none', 'now', '{}', 'call', 2],
    ['another call, after nothing, of a tool that takes none', 'now', '', 'call', 2],
    ['another call, after what may be a placeholder for an unknown tool', 'unknown', '{}', 'call', undefined],
    ['another call, after half the arguments', 'weather', '{"city":"Pa', 'call', undefined],
  ])('%s', (_, name, text, followed, proof) => {
    expect(proven(name, text, followed)).toBe(proof);
  });
});

describe('the schema', () => {
  const proofWith = (schema: unknown, text: string) =>
    proofOf(callOf('tool', text), new Map([['tool', schema]]));

  test.each([
    ['absent parameters, which are {}', {}],
    ['no properties', { type: 'object', properties: {} }],
    ['nothing required', { type: 'object', required: [] }],
    ['nothing else allowed', { type: 'object', properties: {}, additionalProperties: false }],
  ])('takes no arguments: %s', (_, schema) => {
    expect(proofWith(schema, '{}')).toBe(1);
  });

  test('may require arguments that it does not describe', () => {
    const schemas = new Map([['tool', { type: 'object', required: ['city'] }]]);
    expect(proofOf(callOf('tool', '{}', 'call'), schemas)).toBeUndefined();
  });

  test('is read as the draft of 2020', () => {
    const schema = { properties: { list: { prefixItems: [{ type: 'integer' }] } } };
    expect(proofWith(schema, '{"list":[1]}')).toBe(1);
    expect(proofWith(schema, '{"list":["1"]}')).toBeUndefined();
  });

  test.each([
    ['optional ones', { type: 'object', properties: { city: { type: 'string' } } }],
    ['required ones', { type: 'object', required: ['city'] }],
    ['any of one kind', { type: 'object', additionalProperties: { type: 'string' } }],
    ['what is no schema', true],
    ['properties that are none', { properties: 'city' }],
    ['a list of required ones that is none', { required: 'city' }],
  ])('may take arguments, so that {} proves nothing: %s', (_, schema) => {
    expect(proofWith(schema, '{}')).toBeUndefined();
  });

  const city = { type: 'object', properties: { city: { type: 'string' } } };
  test.each([
    ['a regular expression', { properties: { city: { type: 'string', pattern: '^(a+)+$' } } }],
    ['one far down', { allOf: [{ items: { anyOf: [city, { pattern: 'x' }] } }] }],
    ['one for names', { patternProperties: { '^c': { type: 'string' } } }],
    ['a reference that leads nowhere', { properties: { city: { $ref: '#/$defs/city' } } }],
    ['a reference to elsewhere', { $ref: 'https://example.com/city.json' }],
    ['a reference to itself', { $ref: '#' }],
    ['what is no schema', 'weather'],
  ])('proves nothing with %s', (_, schema) => {
    expect(proofWith(schema, '{"city":"Paris"}')).toBeUndefined();
  });

  test.each([
    ['a property called "pattern"', { properties: { pattern: { type: 'string' } }, required: ['pattern'] }],
    [
      'a reference of its own',
      { $defs: { p: { type: 'string' } }, properties: { pattern: { $ref: '#/$defs/p' } } },
    ],
    ['conditions', { anyOf: [{ required: ['city'] }, { required: ['pattern'] }] }],
  ])('proves it with %s', (_, schema) => {
    expect(proofWith(schema, '{"pattern":"TODO"}')).toBe(1);
  });
});

test.each([
  ['', '{}'],
  [' \n', '{}'],
  ['{"a":1}', '{"a":1}'],
  ['1', '1'],
])('the arguments %j are shown as %j', (text, shown) => {
  expect(normalisedArguments(text)).toBe(shown);
});

test.each([
  ['{}', true],
  ['1', true],
  ['', false],
  ['{"a"', false],
  ['{}{}', false],
])('%j parses: %s', (text, expected) => {
  expect(parses(text)).toBe(expected);
});
