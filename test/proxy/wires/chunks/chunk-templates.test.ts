import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChatCompletionsReader, templateOf } from '../../../../src/proxy/wires/chunks/chat-completions.ts';
import { chatForm } from '../../../../src/proxy/wires/chunks/chat-wire.ts';
import type { ChunkReading } from '../../../../src/proxy/wires/chunks/chunk-reader.ts';
import { CASES } from '../../../cases.ts';

const newReader = () => new ChatCompletionsReader(() => 0);
const readWith = (reader: ChatCompletionsReader, data: string, event?: string) =>
  reader.read({ data, event, id: undefined });
const chunkWith = (delta: string, more = '') =>
  `{"id":"c-1","model":"gpt","choices":[{"index":0,"delta":${delta},"finish_reason":null}]${more}}`;
const said = (text: string) => chunkWith(`{"content":${JSON.stringify(text)}}`);

const fitsTemplate = (event: ChunkReading) => event.kind === 'answer' && event.fitsTemplate === true;

/** The meaning of an event, whichever way it was read. */
function meaningOf(event: ChunkReading): unknown {
  if (event.kind !== 'answer') return event;
  const { payload, deltas, role, manyChoices } = event;
  const adopted: unknown = JSON.parse(chatForm.payloadOf(chatForm.envelopeOf({ id: 'other' }), event, true));
  return { payload, deltas, role, manyChoices, adopted };
}

const PROVIDERS: ((content: string) => string)[] = [
  (content) => chunkWith(`{"content":${content}}`),
  (content) => chunkWith(`{"content": ${content}, "refusal": null}`, ',"usage":null'),
  (content) => chunkWith(`{"content":${content}}`, ',"meta":{"content":"no text"}'),
  (content) => chunkWith(`{"content":"before","content":${content}}`),
  (content) => chunkWith(`{"content":${content},"content":"after"}`),
  (content) => chunkWith(`{"role":"assistant","content":${content}}`),
  (content) => chunkWith(`{"role":null,"content":${content}}`),
  (content) => `{"about":{"content":"no text"},${chunkWith(`{"content":${content}}`).slice(1)}`,
];
const contents = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '""',
    'null',
    '[]',
    '3',
    '"',
    '"a',
    '"\u0001"',
    '"a","role":"assistant"',
    '"a"},"x":{"b":"c"',
  ),
);

describe('a chunk that differs from an earlier one in its text alone', () => {
  test('means what it means to a reader that has seen nothing before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...PROVIDERS), contents), { maxLength: 12 }),
        (chunks) => {
          const reader = newReader();
          for (const [provider, content] of chunks) {
            const data = provider(content);
            expect(meaningOf(readWith(reader, data))).toEqual(meaningOf(readWith(newReader(), data)));
          }
        },
      ),
      { numRuns: CASES },
    );
  });

  test('is not parsed as a whole', () => {
    const reader = newReader();
    expect(
      ['Kelp', ' grips', ' "the"', ''].map((text) => fitsTemplate(readWith(reader, said(text)))),
    ).toEqual([false, true, true, true]);
  });

  test('in an event of type error is an error', () => {
    const reader = newReader();
    readWith(reader, said('Kelp'));
    expect(readWith(reader, said(' grips'), 'error').kind).toBe('error_event');
  });
});

test('padding that never repeats ends the search for a template', () => {
  const reader = newReader();
  const padded = (padding: string) => chunkWith('{"content":"a"}', `,"obfuscation":"${padding}"`);
  for (const padding of 'abcdef') readWith(reader, padded(padding));
  expect(fitsTemplate(readWith(reader, padded('f')))).toBe(false);
});

test('a template is only made where the place of the text is certain', () => {
  const data = `{"about":{"content":"a"},${chunkWith('{"content":"a"}').slice(1)}`;
  expect(templateOf(data, JSON.parse(data))).toBeUndefined();
});

test('a text that other fields would show in its place is not mistaken for theirs', () => {
  for (const text of ['probe', 'x', 'x.', '']) {
    const data = `{"note":{"content":"x"},"choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}}}]}`;
    expect(templateOf(data, JSON.parse(data))).toBeUndefined();
  }
});
