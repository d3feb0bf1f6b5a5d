import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventSplitter } from '../../src/client/connection.ts';
import { EventTooLargeError } from '../../src/client/errors.ts';
import { CASES } from '../cases.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

function split(pieces: readonly Uint8Array[]) {
  const splitter = new EventSplitter();
  const events = pieces.map((piece) => splitter.split(piece));
  return {
    frames: events.map(({ frames }) => frames).join(''),
    payloads: events.flatMap(({ payloads }) => payloads),
    id: events.at(-1)?.id,
  };
}

describe('whole events', () => {
  test.each([
    { name: 'an event', given: 'data: {"a":1}\n\n', frames: 'data: {"a":1}\n\n', payloads: ['{"a":1}'] },
    { name: 'no space after the colon', given: 'data:x\n\n', frames: 'data:x\n\n', payloads: ['x'] },
    { name: 'one space of two', given: 'data:  x\n\n', frames: 'data:  x\n\n', payloads: [' x'] },
    { name: 'colons in the data', given: 'data: a: b\n\n', frames: 'data: a: b\n\n', payloads: ['a: b'] },
    { name: 'two lines', given: 'data: a\ndata: b\n\n', frames: 'data: a\ndata: b\n\n', payloads: ['a\nb'] },
    { name: 'an id', given: 'id: r.1.7\ndata: x\n\n', frames: 'data: x\n\n', payloads: ['x'] },
    { name: 'a retry', given: 'retry: 5\ndata: x\n\n', frames: 'data: x\n\n', payloads: ['x'] },
    { name: 'an id without a value', given: 'id\ndata: x\n\n', frames: 'data: x\n\n', payloads: ['x'] },
    {
      name: 'an event name',
      given: 'event: e\ndata: x\n\n',
      frames: 'event: e\ndata: x\n\n',
      payloads: ['x'],
    },
    { name: 'an id alone', given: 'id: 5\n\n', frames: '', payloads: [] },
    { name: 'a retry alone', given: 'retry: 1500\n\n', frames: '', payloads: [] },
    { name: 'a name without data', given: 'event: e\n\n', frames: '', payloads: [] },
    { name: 'blank lines', given: '\n\n\ndata: x\n\n\n', frames: 'data: x\n\n', payloads: ['x'] },
    { name: 'a keep-alive', given: ': hb\n', frames: ': hb\n', payloads: [] },
    { name: 'a keep-alive with a blank line', given: ': hb\n\n', frames: ': hb\n', payloads: [] },
    { name: 'a comment in an event', given: 'data: x\n: c\n\n', frames: ': c\ndata: x\n\n', payloads: ['x'] },
    {
      name: 'CRLF',
      given: 'data: x\r\n\r\ndata: y\r\n\r\n',
      frames: 'data: x\n\ndata: y\n\n',
      payloads: ['x', 'y'],
    },
    { name: 'CR', given: 'data: x\r\rdata: y\r\r', frames: 'data: x\n\ndata: y\n\n', payloads: ['x', 'y'] },
    { name: 'a byte order mark', given: '\uFEFFdata: x\n\n', frames: 'data: x\n\n', payloads: ['x'] },
    {
      name: 'a line separator, which ends no line',
      given: 'data: a\u2028b\n\n',
      frames: 'data: a\u2028b\n\n',
      payloads: ['a\u2028b'],
    },
    {
      name: 'an event that has only begun',
      given: 'data: x\n\ndata: y\n',
      frames: 'data: x\n\n',
      payloads: ['x'],
    },
  ])('$name', ({ given, frames, payloads }) => {
    expect(split([bytesOf(given)])).toMatchObject({ frames, payloads });
  });

  test.each([
    { name: 'of the last event', given: 'id: 1\ndata: x\n\nid: 2\ndata: y\n\n', id: '2' },
    { name: 'not of one that has only begun', given: 'id: 1\ndata: x\n\nid: 2\ndata: y\n', id: '1' },
    { name: 'none', given: 'data: x\n\n', id: '' },
  ])('the id: $name', ({ given, id }) => {
    expect(split([bytesOf(given)]).id).toBe(id);
  });

  test('the pieces in which they come make no difference', () => {
    const line = fc.constantFrom(
      ': hb',
      'id: run.1.3',
      'retry: 5',
      'data: 満潮 🌊 à',
      'data: {"a":1}',
      'event: e',
      '',
      '',
    );
    const lineEnd = fc.constantFrom('\n', '\r\n');
    const stream = fc.array(fc.tuple(line, lineEnd).map((parts) => parts.join('')));
    fc.assert(
      fc.property(stream, fc.array(fc.nat(200)), (lines, cuts) => {
        const bytes = bytesOf(lines.join(''));
        const places = [
          0,
          ...cuts.filter((place) => place < bytes.length).sort((a, b) => a - b),
          bytes.length,
        ];
        const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
        expect(split(pieces)).toEqual(split([bytes]));
      }),
      { numRuns: CASES },
    );
  });
});

describe('an event that never ends', () => {
  const MEBIBYTE = new Uint8Array(1_048_576).fill(0x61);

  test.each([
    { name: 'in one line', piece: MEBIBYTE },
    { name: 'in many', piece: bytesOf(`data: ${'a'.repeat(1_048_576)}\n`) },
  ])('is refused $name', ({ piece }) => {
    const splitter = new EventSplitter();
    splitter.split(bytesOf('data: '));
    for (let count = 0; count < 15; count += 1) splitter.split(piece);
    expect(() => splitter.split(piece)).toThrow(EventTooLargeError);
  });

  test('a long one takes time in proportion', () => {
    const splitter = new EventSplitter();
    const payloads: string[] = [];
    const piece = new Uint8Array(1024).fill(0x61);
    splitter.split(bytesOf('data: '));
    for (let count = 0; count < 15_000; count += 1) splitter.split(piece);
    payloads.push(...splitter.split(bytesOf('\n\n')).payloads);
    expect(payloads[0]).toHaveLength(15_000 * 1024);
  });
});
