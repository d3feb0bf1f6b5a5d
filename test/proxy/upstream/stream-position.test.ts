import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventDecoder } from '../../../src/proxy/upstream/event-decoder.ts';
import { newPosition, type PositionUnit } from '../../../src/proxy/upstream/stream-position.ts';
import { CASES, seedOr } from '../../cases.ts';

const LIMIT = 100_000;

/** One connection: the events in a body that arrives in these pieces, and the position after the last complete one. */
function read(unit: PositionUnit, pieces: readonly Buffer[], position = newPosition(unit)) {
  const decoder = new EventDecoder(LIMIT);
  const data: string[] = [];
  position.begin();
  for (const piece of pieces) {
    const events = decoder.decode(piece);
    position.advance(piece, events.length);
    data.push(...events.map((event) => event.data));
  }
  return { data, position };
}

const inPieces = (body: Buffer, length: number): Buffer[] =>
  Array.from({ length: Math.ceil(body.length / length) }, (_, index) =>
    body.subarray(index * length, (index + 1) * length),
  );

const PIECES = [1, 2, 3, 7, Number.MAX_SAFE_INTEGER];

describe('bytes', () => {
  test.each<[string, string, string]>([
    ['of events', 'data: a\n\ndata: b\n\n', ''],
    ['and half an event', 'data: a\n\n', 'data: b'],
    ['and an event without its blank line', 'data: a\n\n', 'data: b\n'],
    ['with characters of several bytes', 'data: 北京 🙂\n\n', 'data: 🙂'],
    ['with carriage returns and line feeds', 'data: a\r\n\r\n', 'data: b\r\n'],
    ['with carriage returns', 'data: a\r\r', 'data: b\r'],
    ['with a byte order mark before them', '\ufeffdata: a\n\n', 'da'],
    ['with comments between', ': hb\n\ndata: a\n: hb\n\n:\n\n', ': h'],
    ['with several lines', 'event: x\ndata: {"a":\ndata: 1}\n\n', 'event: x\ndata: {'],
    ['of nothing whole', '', 'data: a'],
    ['of nothing', '', ''],
  ])('%s', (_, whole, half) => {
    for (const length of PIECES) {
      const body = Buffer.from(whole + half);
      expect(read('bytes', inPieces(body, length)).position.value).toBe(Buffer.byteLength(whole));
    }
  });

  test('of a character that was cut belong to no event', () => {
    const body = Buffer.from('data: a\n\ndata: 🙂').subarray(0, 17);
    expect(read('bytes', [body]).position.value).toBe(9);
  });

  test('count a carriage return that ends an event before its line feed has come', () => {
    const { data, position } = read('bytes', [Buffer.from('data: a\r\n\r')]);
    expect([data, position.value]).toEqual([['a'], 10]);
    expect(read('bytes', [Buffer.from('\ndata: b\r\n\r\n')], position).data).toEqual(['b']);
    expect(position.value).toBe(22);
  });

  test('count what was taken although it has no blank line', () => {
    const { position } = read('bytes', [Buffer.from('data: a\n\ndata: b')]);
    position.takeRest();
    expect(position.value).toBe(16);
  });

  const lineEnds = fc.constantFrom('\n', '\r\n', '\r');
  const blocks = fc.array(
    fc.record({ text: fc.string({ unit: 'grapheme', maxLength: 12 }), comment: fc.boolean(), end: lineEnds }),
    { minLength: 1, maxLength: 12 },
  );
  const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 5 });

  test('lead on from any byte to exactly the events that were not taken', () => {
    fc.assert(
      fc.property(blocks, cuts, fc.constantFrom(...PIECES), (all, places, length) => {
        const lines = all.map(({ text, comment, end }) => {
          const data = `data: ${JSON.stringify(text)}${end}`;
          return `${comment ? `: hb${end}${data}: hb${end}${end}: hb${end}` : data}${end}`;
        });
        const body = Buffer.from(lines.join(''));
        const uncut = read('bytes', [body]).data;
        const position = newPosition('bytes');
        const data = [...places, body.length].flatMap((place) => {
          const rest = body.subarray(position.value);
          return read('bytes', inPieces(rest.subarray(0, place), length), position).data;
        });
        expect(data).toEqual(uncut);
      }),
      { seed: seedOr(20_261_122), numRuns: CASES },
    );
  });
});

describe('events', () => {
  test.each<[string, string, number | undefined]>([
    ['that are whole', 'data: a\n\ndata: b\n\n', 2],
    ['and not half a one', 'data: a\n\ndata: b\n', 1],
    ['in several lines', 'event: x\ndata: {"a":\ndata: 1}\n\n', 1],
    ['with characters of several bytes', 'data: 北京 🙂\n\ndata: 🙂\n\n', 2],
    ['with comments within them', ': hb\ndata: a\n\n', 1],
    ['of nothing', '', 0],
    ['and comments between, which may count or not', 'data: a\n\n: hb\n\n', undefined],
    ['that end in another way than is counted', 'data: a\r\n\r\n', undefined],
    ['and a blank line too many', 'data: a\n\n\n\n', undefined],
  ])('%s', (_, body, count) => {
    for (const length of PIECES) {
      expect(read('events', inPieces(Buffer.from(body), length)).position.value).toBe(count);
    }
  });

  test('continue from one connection to the next', () => {
    const { position } = read('events', [Buffer.from('data: a\n\ndata: b\n')]);
    expect(read('events', [Buffer.from('data: b\n\ndata: c\n\n')], position).position.value).toBe(3);
  });

  test('count what was taken although it has no blank line', () => {
    const { position } = read('events', [Buffer.from('data: a\n\ndata: b')]);
    position.takeRest();
    expect(position.value).toBe(2);
  });
});
