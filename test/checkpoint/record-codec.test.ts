import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeRecord, encodeRecord } from '../../src/checkpoint/record-codec.ts';
import { SMALL_RUN, textRecord } from './fixtures.ts';
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
      { numRuns: 1000 },
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
      { numRuns: 3000 },
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
