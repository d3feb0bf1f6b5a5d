import { describe, expect, test } from 'vitest';
import { EventDecoder, EventTooLargeError } from '../../../src/proxy/upstream/event-decoder.ts';

const LIMIT = 1_000;

interface Decoded {
  readonly data: string[];
  readonly residue: string;
}

/** Everything that is decoded from a body in pieces of this size. */
function decode(body: string, piece_bytes = Number.POSITIVE_INFINITY): Decoded {
  const decoder = new EventDecoder(LIMIT);
  const bytes = Buffer.from(body);
  const data: string[] = [];
  for (let start = 0; start < bytes.length; start += piece_bytes) {
    data.push(...decoder.decode(bytes.subarray(start, start + piece_bytes)).map((event) => event.data));
  }
  data.push(...decoder.end().map((event) => event.data));
  return { data, residue: decoder.residue };
}

const PIECES = [1, 2, 3, 7, Number.POSITIVE_INFINITY];

describe('events', () => {
  test.each<[string, string, string[]]>([
    ['with line feeds', 'data: a\n\ndata: b\n\n', ['a', 'b']],
    ['with carriage returns and line feeds', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['with carriage returns', 'data: a\r\rdata: b\r\r', ['a', 'b']],
    ['with characters of several bytes', 'data: 北京 🙂\n\n', ['北京 🙂']],
    ['with a byte order mark before them', '\ufeffdata: a\n\n', ['a']],
    ['with comments between', ': hb\ndata: a\n: hb\n\n: hb\n\ndata: b\n\n', ['a', 'b']],
    ['in several lines', 'data: {"a":\ndata: 1}\n\n', ['{"a":\n1}']],
    ['of which the last lacks its blank line', 'data: a\n\ndata: b\n', ['a', 'b']],
    ['of which the last lacks its line end', 'data: a\n\ndata: b', ['a', 'b']],
    ['none', '', []],
  ])('%s', (_, body, data) => {
    for (const piece_bytes of PIECES) expect(decode(body, piece_bytes)).toEqual({ data, residue: '' });
  });

  test('keep their names', () => {
    const [event] = new EventDecoder(LIMIT).decode(Buffer.from('event: error\ndata: {}\n\n'));
    expect(event).toMatchObject({ event: 'error', data: '{}' });
  });

  test('come as soon as they are whole', () => {
    const decoder = new EventDecoder(LIMIT);
    expect(decoder.decode(Buffer.from('data: a\n'))).toEqual([]);
    expect(decoder.decode(Buffer.from('\nda'))).toMatchObject([{ data: 'a' }]);
    expect(decoder.decode(Buffer.from('ta: b\n\n'))).toMatchObject([{ data: 'b' }]);
    expect(decoder.end()).toEqual([]);
  });

  test('half a character at the end is none', () => {
    const decoder = new EventDecoder(LIMIT);
    decoder.decode(Buffer.from('data: 🙂').subarray(0, 8));
    expect(decoder.end()).toMatchObject([{ data: '\ufffd' }]);
  });

  test('may not be larger than the limit', () => {
    const decoder = new EventDecoder(LIMIT);
    expect(decoder.decode(Buffer.from(`data: ${'x'.repeat(900)}\n\n`))).toHaveLength(1);
    expect(() => decoder.decode(Buffer.from(`data: ${'x'.repeat(1_100)}`))).toThrow(EventTooLargeError);
  });
});

describe('an error outside of any event', () => {
  const ERROR = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } };
  const pretty = JSON.stringify(ERROR, null, 2);

  test.each([
    ['after the last event', `data: a\n\n${pretty}\n`],
    ['after the last event, with a blank line', `data: a\n\n${pretty}\n\n`],
    ['with carriage returns', `data: a\r\n\r\n${pretty.replaceAll('\n', '\r\n')}\r\n`],
    ['after comments', `data: a\n\n: hb\n\n: hb\n\n${pretty}`],
    ['and nothing else', pretty],
    ['in an array', `data: a\n\n[${pretty}]`],
  ])('is kept: %s', (_, body) => {
    for (const piece_bytes of PIECES) {
      const { residue } = decode(body, piece_bytes);
      expect([JSON.parse(residue)].flat()).toEqual([ERROR]);
    }
  });

  test.each([
    ['events', 'data: {"a":1}\n\n'],
    ['half an event', 'data: a\n\ndata: {"a":'],
    ['comments', 'data: a\n\n: {"not":"json"}\n\n'],
    ['prose', 'data: a\n\nInternal Server Error'],
    ['an error before an event', `${pretty}\n\ndata: a\n\n`],
  ])('is not seen in %s', (_, body) => {
    for (const piece_bytes of PIECES) expect(decode(body, piece_bytes).residue).toBe('');
  });

  test('is not looked for in more than could be one', () => {
    const decoder = new EventDecoder(1_000_000);
    for (let piece = 0; piece < 100; piece++) decoder.decode(Buffer.from('x'.repeat(1_000)));
    decoder.decode(Buffer.from('\n\n{"error":"Oh"}'));
    expect(decoder.residue).toBe('{"error":"Oh"}');
  });
});
