import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { changedPaths } from '../../../src/proxy/tasks/request-difference.ts';
import { CASES, seedOr } from '../../cases.ts';
import { expectShares } from '../../shares.ts';

const SEED = seedOr(20_261_128);

const changed = (before: object, now: object) => changedPaths(JSON.stringify(before), JSON.stringify(now));

const messages = (...contents: string[]) => contents.map((content) => ({ role: 'user', content }));

describe('what a request has changed', () => {
  it.each<[string, object, object, string[]]>([
    ['a message', { messages: messages('a', 'b') }, { messages: messages('a', 'c') }, ['messages[1]']],
    ['an item of the input', { input: ['a', 'b'] }, { input: ['c', 'b'] }, ['input[0]']],
    ['an input that is no list', { input: 'a' }, { input: ['a'] }, ['input']],
    ['a field', { system: 'a', temperature: 0 }, { system: 'b', temperature: 0 }, ['system']],
    ['a field that was not there', { model: 'm' }, { model: 'm', tools: [] }, ['tools']],
    ['a field that is there no more', { model: 'm', tools: [] }, { model: 'm' }, ['tools']],
    ['one of several tools', { tools: [{ name: 'a' }] }, { tools: [{ name: 'b' }] }, ['tools']],
    ['no list of messages any more', { messages: messages('a') }, {}, ['messages']],
  ])('is named by its path: %s', (_, before, now, paths) => {
    expect(changed(before, now)).toEqual(paths);
  });

  it('begins with the messages', () => {
    const before = { model: 'm', messages: messages('a', 'b', 'c') };
    expect(changed(before, { model: 'n', messages: messages('d', 'b', 'e') })).toEqual([
      'messages[0]',
      'messages[2]',
      'model',
    ]);
  });

  it('is the first message that was added or left out, however many follow it', () => {
    const [short, long] = [{ messages: messages('a') }, { messages: messages('a', 'b', 'c') }];
    expect([changed(short, long), changed(long, short)]).toEqual([['messages[1]'], ['messages[1]']]);
  });

  it('has eight paths at most', () => {
    const contents = Array.from('abcdefghij');
    const now = messages(...contents.map((content) => `${content}!`));
    const paths = changed({ messages: messages(...contents) }, { messages: now, model: 'm' });
    expect(paths).toEqual(Array.from({ length: 8 }, (_, index) => `messages[${index}]`));
  });

  it('is nothing where only the way to ask for the answer is another one', () => {
    const more = { stream_options: {}, request_id: 'r', rid: 'r', client_metadata: {} };
    expect(changed({ stream: true }, { stream: false, ...more })).toEqual([]);
  });

  it('has no names that could be a text', () => {
    const names = ['my secret', 'ä', 'a.b', '', 'a'.repeat(65), '0'];
    expect(changed(Object.fromEntries(names.map((name) => [name, 1])), {})).toEqual([]);
    expect(changed({ ['a'.repeat(64)]: 1, constructor: 1, __proto___: 1 }, {})).toEqual([
      'a'.repeat(64),
      'constructor',
      '__proto___',
    ]);
  });
});

const FIELDS = ['model', 'system', 'tools', 'temperature', 'tool_choice', 'metadata'] as const;

const bodies = fc.record({
  list: fc.constantFrom('messages', 'input'),
  entries: fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 12 }),
  fields: fc.dictionary(fc.constantFrom(...FIELDS), fc.jsonValue({ maxDepth: 3 })),
});

const other = (value: fc.JsonValue | undefined) => ({ instead_of: value });

test('is exactly the one place at which a body differs', () => {
  const counts = { 'a message': 0, 'an added message': 0, 'a field': 0 };
  fc.assert(
    fc.property(bodies, fc.nat(), fc.jsonValue(), ({ list, entries, fields }, place, added) => {
      const before = { [list]: entries, ...fields };
      const names = Object.keys(fields);
      const at = place % (entries.length + 1 + names.length);
      const name = names[at - entries.length - 1];
      if (name !== undefined) {
        counts['a field']++;
        expect(changed(before, { ...before, [name]: other(fields[name]) })).toEqual([name]);
        return;
      }
      counts[at === entries.length ? 'an added message' : 'a message']++;
      const entry = at === entries.length ? added : other(entries[at]);
      const now = { ...before, [list]: entries.toSpliced(at, 1, entry) };
      expect(changed(before, now)).toEqual([`${list}[${at}]`]);
    }),
    { seed: SEED, numRuns: CASES },
  );
  expectShares(counts, CASES, { 'a message': 0.3, 'an added message': 0.1, 'a field': 0.1 });
});

test('is nothing where a body is written otherwise', () => {
  fc.assert(
    fc.property(bodies, ({ list, entries, fields }) => {
      const before = { [list]: entries, ...fields };
      expect(changedPaths(JSON.stringify(before), JSON.stringify(reversed(before), null, 2))).toEqual([]);
    }),
    { seed: SEED, numRuns: CASES },
  );
});

/** The same value with all fields in reverse order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, field]) => [name, reversed(field)]),
  );
}
