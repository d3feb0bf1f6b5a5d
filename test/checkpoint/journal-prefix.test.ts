import { describe, expect, test } from 'vitest';
import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import { JournalPrefix } from '../../src/checkpoint/journal-prefix.ts';
import { HEADER_RECORD, SMALL_RUN, textRecord } from './fixtures.ts';

const UNREADABLE = { reason: 'checksum mismatch' };

function prefixOf(records: readonly (JournalRecord | typeof UNREADABLE)[], from?: number): JournalPrefix {
  const prefix = new JournalPrefix(from);
  for (const record of records) prefix.add('reason' in record ? record : { value: record });
  return prefix;
}

describe('the sound part of a run', () => {
  test('that has no damage is all of it', () => {
    const whole = prefixOf(SMALL_RUN);
    expect(whole).toMatchObject({ records: SMALL_RUN, seq: 7, damage: undefined });
    expect(prefixOf(SMALL_RUN.slice(2), 3)).toMatchObject({ records: SMALL_RUN.slice(2), damage: undefined });
  });

  test.each<[string, (number | '?')[], number, string]>([
    [
      'a record is missing',
      [0, 1, 3],
      2,
      'events 6 to 7 do not follow event 3; missing: events 4 to 5; discarded: events 6 to 7',
    ],
    [
      'a record cannot be read',
      [0, '?', 2, 3],
      1,
      'checksum mismatch; missing: events 1 to 3; discarded: events 4 to 7',
    ],
    [
      'several cannot be read',
      [0, '?', 2, '?'],
      1,
      'checksum mismatch; missing: events 1 to 3; discarded: events 4 to 5',
    ],
    ['the last one cannot be read', [0, 1, 2, '?'], 3, 'checksum mismatch'],
    [
      'a record is there twice',
      [0, 1, 1, 2],
      2,
      'events 1 to 3 do not follow event 3; discarded: events 4 to 5',
    ],
    [
      'two records changed places',
      [0, 2, 1, 3],
      1,
      'events 4 to 5 do not follow event 0; discarded: events 1 to 7',
    ],
    ['the header is missing', [1, 2, 3], 0, 'header record missing; discarded: events 1 to 7'],
    ['the header is there twice', [0, 0, 1], 1, 'second header record; discarded: events 1 to 3'],
  ])('ends where %s, and the reason says what is lost', (_, positions, record, reason) => {
    const prefix = prefixOf(
      positions.map((position) => (position === '?' ? UNREADABLE : (SMALL_RUN[position] as JournalRecord))),
    );
    const sound = SMALL_RUN.slice(0, record);
    expect(prefix.records).toEqual(sound);
    expect(prefix.damage).toEqual({ record, seq: sound.at(-1)?.seq ?? 0, reason });
  });

  test('ends before a record without events', () => {
    expect(prefixOf([HEADER_RECORD, textRecord(0)]).damage).toEqual({
      record: 1,
      seq: 0,
      reason: 'empty record',
    });
  });

  test('is known to be too short when something says how long the run was', () => {
    const prefix = prefixOf(SMALL_RUN.slice(0, 2));
    prefix.expect(3);
    expect(prefix.damage).toBeUndefined();
    prefix.expect(7);
    expect(prefix.damage?.reason).toBe('the journal is too short; missing: events 4 to 7');
  });

  test('spells out only the first ranges of what is missing', () => {
    const gaps = [2, 4, 6, 8, 10].map((after) => textRecord(after, 'x'));
    expect(prefixOf([HEADER_RECORD, ...gaps]).damage?.reason).toBe(
      'events 3 to 3 do not follow event 0; missing: events 1 to 2, events 4 to 4, events 6 to 6 and more; ' +
        'discarded: events 3 to 3, events 5 to 5, events 7 to 7 and more',
    );
  });
});

describe('records before the requested part', () => {
  test('are gone past', () => {
    const prefix = new JournalPrefix();
    for (const seq of [0, 3]) prefix.pass(seq);
    prefix.add({ value: SMALL_RUN[2] as JournalRecord });
    expect(prefix).toMatchObject({ records: [SMALL_RUN[2]], seq: 5, damage: undefined });
    expect(prefix.rewind(3)).toBe(true);
    expect(prefix).toMatchObject({ records: [], seq: 3 });
    expect(prefix.rewind(0)).toBe(true);
    expect(prefix.seq).toBe(0);
  });

  test.each([
    ['the header', [3]],
    ['their order', [0, 5, 3]],
    ['one of them twice', [0, 3, 3]],
  ])('are damaged without %s', (_, seqs) => {
    const prefix = new JournalPrefix();
    for (const seq of seqs) prefix.pass(seq);
    expect(prefix.damage).toMatchObject({ record: seqs.length - 1 });
  });
});

describe('a successor', () => {
  test('makes up for damage behind the event it continues from', () => {
    const prefix = prefixOf([...SMALL_RUN.slice(0, 3), UNREADABLE]);
    expect(prefix.rewind(3)).toBe(true);
    expect(prefix).toMatchObject({ records: SMALL_RUN.slice(0, 2), seq: 3, damage: undefined });
    prefix.add({ value: textRecord(3, 'x') });
    expect(prefix.seq).toBe(4);
  });

  test('cannot continue from an event that is missing', () => {
    const prefix = prefixOf([...SMALL_RUN.slice(0, 2), UNREADABLE]);
    expect(prefix.rewind(5)).toBe(false);
    expect(prefix.damage).toEqual({
      record: 2,
      seq: 3,
      reason: 'checksum mismatch; missing: events 4 to 5',
    });
  });

  test('can continue from nothing at all', () => {
    const prefix = prefixOf([UNREADABLE]);
    expect(prefix.rewind(-1)).toBe(true);
    for (const record of SMALL_RUN) prefix.add({ value: record });
    expect(prefix).toMatchObject({ records: SMALL_RUN, damage: undefined });
  });
});
