import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bodyOf, checkedLine } from '../../src/checkpoint/checked-line.ts';
import { decodeRecord, encodeRecord, seqOf } from '../../src/checkpoint/record-codec.ts';
import { createSeal } from '../../src/checkpoint/seal.ts';
import { CASES } from '../cases.ts';
import { newRunId, SEALING_KEY, SMALL_RUN, textRecord } from './fixtures.ts';
import { anyRecord } from './record-arbitrary.ts';

describe('encoded records', () => {
  test('are one line each and read back as they were, whatever text they carry', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const line = encodeRecord(record);
        expect(line.indexOf('\n')).toBe(line.length - 1);
        expect(decodeRecord(line)).toEqual({ value: record });
        expect(decodeRecord(Buffer.from(line))).toEqual({ value: record });
      }),
      { numRuns: CASES },
    );
  });

  test('are refused after any change of any one byte', () => {
    fc.assert(
      fc.property(anyRecord, fc.nat(), fc.integer({ min: 1, max: 255 }), (record, at, change) => {
        const line = Buffer.from(encodeRecord(record));
        const position = at % line.length;
        line[position] = (line[position] as number) ^ change;
        // A changed line break leaves the record whole; what it does to the next line is the reader's to notice.
        if (position < line.length - 1) expect(decodeRecord(line)).toHaveProperty('reason');
      }),
      { numRuns: CASES },
    );
  });

  test('are refused when cut anywhere', () => {
    for (const record of SMALL_RUN) {
      const line = Buffer.from(encodeRecord(record));
      for (let length = 0; length < line.length - 1; length++) {
        expect(decodeRecord(line.subarray(0, length))).toHaveProperty('reason');
      }
    }
  });

  test('keep an emoji that two deltas share', () => {
    const record = textRecord(7, 'ha\ud83d', '\ude42ha');
    expect(decodeRecord(encodeRecord(record))).toEqual({ value: record });
  });

  test('merge a series of deltas of one kind', () => {
    const words = Array.from({ length: 32 }, (_, position) => ` word${position}`);
    const line = encodeRecord(textRecord(100, ...words));
    expect(line).toContain(words.join(''));
    expect(line.length).toBeLessThan(words.join('').length + 32 * 2 + 40);
  });
});

describe('the sequence number of a record', () => {
  test.each([
    ['plain', undefined],
    ['sealed', createSeal([SEALING_KEY])],
  ])('is read without the rest of it (%s)', (_, seal) => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const body = bodyOf(encodeRecord(record, seal));
        expect('value' in body && seqOf(body.value)).toBe(record.seq);
      }),
      { numRuns: CASES },
    );
  });

  test.each(['{"status":"complete","seq":3}', '[]', '[', '[,', '["a",1]', '"text"', '[12'])(
    'is none in %s',
    (body) => {
      expect(seqOf(Buffer.from(body))).toBeUndefined();
    },
  );
});

describe('sealed records', () => {
  const seal = createSeal([SEALING_KEY]).for(newRunId());

  test('are one line each and read back as they were, whatever text they carry', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const line = encodeRecord(record, seal);
        expect(line.indexOf('\n')).toBe(line.length - 1);
        expect(decodeRecord(line, seal)).toEqual({ value: record });
        expect(decodeRecord(Buffer.from(line), seal)).toEqual({ value: record });
      }),
      { numRuns: CASES },
    );
  });

  test('show nothing of what they say', () => {
    for (const record of SMALL_RUN) {
      const line = encodeRecord(record, seal);
      expect(line).toMatch(/^[0-9a-f]{8} \[\d+,"[\w-]+\.[\w-]+"\]\n$/);
      expect(line).not.toBe(encodeRecord(record, seal));
    }
  });

  test('are refused without their key, and for another run', () => {
    const reason = 'sealed with a key that is not configured, or for another place';
    const others = [
      undefined,
      createSeal(['x'.repeat(32)]).for('a run'),
      createSeal([SEALING_KEY]).for('another run'),
    ];
    const line = encodeRecord(textRecord(0, 'a'), createSeal([SEALING_KEY]).for('a run'));
    for (const other of others) expect(decodeRecord(line, other)).toEqual({ reason });
    expect(decodeRecord(line, createSeal([SEALING_KEY]).for('a run'))).toEqual({ value: textRecord(0, 'a') });
  });

  test('are refused in the place of another one', () => {
    const [line = ''] = SMALL_RUN.slice(1).map((record) => encodeRecord(record, seal));
    const body = line.slice(9, -1).replace(/^\[3,/, '[4,');
    expect(decodeRecord(checkedLine(body), seal)).toEqual({
      reason: 'sealed with a key that is not configured, or for another place',
    });
  });

  test('are distinguished from what was stored without a key, which is read only where that is accepted', () => {
    const plain = encodeRecord(textRecord(0, 'a'));
    expect(decodeRecord(plain, seal)).toEqual({ reason: expect.stringMatching(/^without a proof/) });
    expect(decodeRecord(plain, createSeal([SEALING_KEY], true))).toEqual({ value: textRecord(0, 'a') });
  });
});
