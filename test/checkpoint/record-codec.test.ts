import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bodyOf, checkedLine } from '../../src/checkpoint/checked-line.ts';
import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import {
  decodePlainRecord,
  decodeRecord,
  encodePlainRecord,
  encodeRecord,
  isPlainRecord,
  seqOf,
} from '../../src/checkpoint/record-codec.ts';
import { createProofs, createSeal, epochSeal } from '../../src/checkpoint/seal.ts';
import { CASES } from '../cases.ts';
import { newRunId, OWNER, SEALING_KEY, SMALL_RUN, textRecord } from './fixtures.ts';
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
        // A damaged line break leaves this record intact; the reader notices it in the next line.
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
        expect('value' in body && seqOf(body.value, 0, body.value.length)).toBe(record.seq);
      }),
      { numRuns: CASES },
    );
  });

  test.each(['{"status":"complete","seq":3}', '[]', '[', '[,', '["a",1]', '"text"', '[12'])(
    'is none in %s',
    (body) => {
      expect(seqOf(Buffer.from(body), 0, body.length)).toBeUndefined();
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

describe('plain records', () => {
  const deployment = createProofs('the secret of a deployment');
  const RUN = newRunId();
  const proofs = epochSeal(deployment, RUN, OWNER, 1);

  const piece = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 8 }),
    fc.constantFrom('', ' ', '\n', ' 5 5', '"]', '\ufeff', ' AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA'),
  );
  const plainRecord = fc
    .record({
      kind: fc.constantFrom('text', 'reasoning'),
      texts: fc.array(piece, { minLength: 1, maxLength: 40 }),
      at_ms: fc.nat(),
      before: fc.nat(),
    })
    .map(({ kind, texts, at_ms, before }) => ({
      seq: before + texts.length,
      at_ms,
      events: texts.map((text) => ({ deltas: [{ kind, text }] as const })),
    }));

  const lineOf = (record: JournalRecord) => Buffer.from(encodePlainRecord(record, proofs) ?? '');

  test('are read back as they were, whatever text they carry, and by the same key alone', () => {
    fc.assert(
      fc.property(plainRecord, (record) => {
        const line = lineOf(record);
        expect(isPlainRecord(line)).toBe(true);
        expect(isPlainRecord(Buffer.from(encodeRecord(record, proofs)))).toBe(false);
        expect(decodePlainRecord(line, record.seq, proofs)).toEqual({ value: record });
        expect(decodePlainRecord(line, record.seq, undefined)).toEqual({ value: record });
        for (const other of [
          epochSeal(deployment, RUN, OWNER, 2),
          epochSeal(deployment, newRunId(), OWNER, 1),
          epochSeal(createProofs('the secret of another'), RUN, OWNER, 1),
        ])
          expect(decodePlainRecord(line, record.seq, other)).toHaveProperty('reason');
        expect(decodePlainRecord(line, record.seq + 1, proofs)).toHaveProperty('reason');
      }),
      { numRuns: CASES },
    );
  });

  test('are refused after any change of any one byte, as other kinds, and when cut anywhere', () => {
    fc.assert(
      fc.property(plainRecord, fc.nat(), fc.integer({ min: 1, max: 255 }), (record, at, change) => {
        const line = lineOf(record);
        const position = at % line.length;
        expect(decodePlainRecord(line.subarray(0, position), record.seq, proofs)).toHaveProperty('reason');
        const kind = record.events[0]?.deltas[0]?.kind;
        const other = Buffer.from((kind === 'text' ? '^' : '~') + line.toString().slice(1));
        expect(decodePlainRecord(other, record.seq, proofs)).toHaveProperty('reason');
        line[position] = (line[position] as number) ^ change;
        expect(decodePlainRecord(line, record.seq, proofs)).toHaveProperty('reason');
      }),
      { numRuns: CASES },
    );
  });

  test('take little more than their text', () => {
    const words = Array.from({ length: 5 }, (_, position) => ` word${position}`);
    const line = lineOf({ ...textRecord(100, ...words), at_ms: 1_700_000_000_000 });
    expect(line.length).toBe(words.join('').length + 5 + 1 + 8 + 31 + 3);
  });

  test('are none where anything is more than text of one kind, is long, or is not proven', () => {
    const at_ms = 1;
    const plain = { ...textRecord(0, 'a', 'b'), at_ms };
    expect(encodePlainRecord(plain, proofs)).toBeDefined();
    expect(encodePlainRecord(plain, undefined)).toBeUndefined();
    expect(encodePlainRecord(plain, createSeal([SEALING_KEY]).for(RUN))).toBeUndefined();
    for (const record of [
      ...SMALL_RUN,
      textRecord(0, 'a'),
      { ...textRecord(0, 'x'.repeat(36)), at_ms },
      { ...textRecord(0, 'ha\ud83d', '\ude42ha', '\ud83d'), at_ms },
      {
        seq: 2,
        at_ms,
        events: [...textRecord(0, 'a').events, { deltas: [{ kind: 'reasoning', text: 'b' }] }],
      },
    ] as JournalRecord[])
      expect(encodePlainRecord(record, proofs)).toBeUndefined();
  });
});
