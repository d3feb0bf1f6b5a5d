import { describe, expect, test, vi } from 'vitest';
import type { Delta, Proof } from '../../src/plans/delta.ts';
import { closedBefore, closedByFinish } from '../../src/plans/tool-call.ts';
import type { Transcript } from '../../src/plans/transcript.ts';
import { call, cancel, close, reasoning, SCHEMAS, start, text, transcriptOf } from './saying.ts';

const WHOLE = '{"city":"Paris"}';
const HALF = '{"city":"Pa';

const closedAt = (transcript: Transcript, next: Delta, tool_proof: Proof = 1) =>
  closedBefore(next, transcript, SCHEMAS, tool_proof).map(({ index }) => index);

describe('something else begins', () => {
  test.each<[string, Transcript, Delta, number[]]>([
    ['text after a whole call', transcriptOf(call(0, 'weather', WHOLE)), text('So'), [0]],
    ['a call after a whole call', transcriptOf(call(0, 'weather', WHOLE)), start(1, 'weather'), [0]],
    [
      'text after several whole calls',
      transcriptOf(call(0, 'weather', WHOLE), call(1, 'weather', WHOLE)),
      text('So'),
      [0, 1],
    ],
    ['text after a call of which only half came', transcriptOf(call(0, 'weather', HALF)), text('So'), []],
    [
      'a call waits for those before it',
      transcriptOf(call(0, 'weather', HALF), call(1, 'weather', WHOLE)),
      text('So'),
      [],
    ],
    [
      'a call does not wait for those after it',
      transcriptOf(call(0, 'weather', WHOLE), call(1, 'weather', HALF)),
      text('So'),
      [0],
    ],
    ['a call after one that has only been started', transcriptOf(call(0, 'now')), start(1, 'weather'), []],
    [
      'a call after one that has only been started, with a blank',
      transcriptOf(call(0, 'now', ' ')),
      start(1, 'weather'),
      [],
    ],
    ['text after one that has only been started', transcriptOf(call(0, 'now')), text('So'), [0]],
    ['a call after one without arguments', transcriptOf(call(0, 'now', '{}')), start(1, 'weather'), [0]],
    ['a call after a placeholder', transcriptOf(call(0, 'weather', '{}')), start(1, 'weather'), []],
    ['text after a placeholder', transcriptOf(call(0, 'weather', '{}')), text('So'), [0]],
    ['more arguments', transcriptOf(call(0, 'weather', WHOLE)), call(0, 'weather', ' ')[1] as Delta, []],
    ['thoughts', transcriptOf(call(0, 'weather', WHOLE)), reasoning('So'), []],
    ['the finish', transcriptOf(call(0, 'weather', WHOLE)), { kind: 'finish', reason: 'stop' }, []],
    ['text after a call that is closed', transcriptOf(call(0, 'weather', WHOLE), close(0)), text('So'), []],
    ['text after a call that was cut', transcriptOf(call(0, 'weather', HALF), cancel(0)), text('So'), []],
    ['text after nothing', transcriptOf(), text('So'), []],
  ])('%s', (_, transcript, next, closed) => {
    expect(closedAt(transcript, next)).toEqual(closed);
  });

  test('closes with the proof that it is', () => {
    const transcript = transcriptOf(call(0, 'weather', WHOLE));
    expect(closedBefore(text('So'), transcript, SCHEMAS, 1)).toEqual([close(0, 2)]);
  });

  test('is enough for a policy of 2, not for a policy of 3', () => {
    const transcript = transcriptOf(call(0, 'weather', WHOLE));
    expect(closedAt(transcript, text('So'), 2)).toEqual([0]);
    expect(closedAt(transcript, text('So'), 3)).toEqual([]);
  });
});

test('a call is parsed once, and not for every word that follows it', () => {
  const parse = vi.spyOn(JSON, 'parse');
  try {
    const half = transcriptOf(call(0, 'weather', `{"city":"${'}'.repeat(100_000)}`));
    for (let word = 0; word < 100; word++) {
      // The arguments continue between the words, so an earlier result can't be reused for the whole.
      for (const delta of [text('So'), ...call(0, 'weather', '}').slice(1)]) {
        expect(closedAt(half, delta)).toEqual([]);
        half.fold(delta);
      }
    }
    expect(parse).not.toHaveBeenCalled();
    const broken = transcriptOf(call(0, 'weather', '{"city"', '}'));
    for (let word = 0; word < 100; word++) expect(closedAt(broken, text('So'))).toEqual([]);
    expect(parse).toHaveBeenCalledTimes(1);
  } finally {
    parse.mockRestore();
  }
});

test.each<[string, string[], number[]]>([
  ['a bracket in a string', ['{"city":"}', '"}'], [0]],
  ['an escaped quote', ['{"city":"\\', '"}', '"}'], [0]],
  ['an escape that is cut', ['{"city":"', '\\', '\\', '"}'], [0]],
  ['lists and objects', ['{"city":[{"a":[', ']}', ']}'], [0]],
  ['white space around it', [' \n', '{"city":"Paris"}', '\t\n'], [0]],
  ['two objects', ['{"city":"Paris"}', '{}'], []],
  ['a bracket too many', ['{"city":"Paris"}', '}'], []],
  ['a list', ['[{}]'], []],
  ['a number', ['1'], []],
  ['brackets of two kinds', ['{"city":[}]'], []],
  ['a space that is none in JSON', ['\u00a0', '{"city":"Paris"}'], []],
])('%s, and then text', (_, fragments, closed) => {
  expect(closedAt(transcriptOf(call(0, 'weather', ...fragments)), text('So'))).toEqual(closed);
});

describe('the finish reason', () => {
  test('closes every call that is whole, by the best proof there is', () => {
    const transcript = transcriptOf(call(0, 'weather', WHOLE), call(1, 'now'), call(2, 'unknown', '1'));
    expect(closedByFinish(transcript)).toEqual({ closed: [close(0), close(1), close(2)], broken: [] });
  });

  test('makes no half document whole', () => {
    const transcript = transcriptOf(
      call(0, 'weather', HALF),
      call(1, 'weather', WHOLE),
      call(2, 'weather', WHOLE, WHOLE),
    );
    const { closed, broken } = closedByFinish(transcript);
    expect(closed).toEqual([close(1)]);
    expect(broken.map(({ index }) => index)).toEqual([0, 2]);
  });

  test('that does not speak of calls closes none that lacks the arguments which its tool requires', () => {
    const schemas = new Map([
      ['weather', { type: 'object', properties: { city: {} }, required: ['city'] }],
      ['now', { type: 'object', properties: { zone: {} }, required: [] }],
    ]);
    const transcript = transcriptOf(
      call(0, 'weather'),
      call(1, 'weather', WHOLE),
      call(2, 'weather', ' '),
      call(3, 'weather', '{}'),
      call(4, 'now'),
      call(5, 'unknown'),
    );
    const { closed, broken } = closedByFinish(transcript, schemas);
    expect(broken.map(({ index }) => index)).toEqual([0, 2]);
    expect(closed).toEqual([close(1), close(3), close(4), close(5)]);
    expect(closedByFinish(transcript).broken).toEqual([]);
  });

  test('has nothing to say about calls that are closed or cut', () => {
    const transcript = transcriptOf(call(0, 'weather', WHOLE), close(0), call(1, 'weather', HALF), cancel(1));
    expect(closedByFinish(transcript)).toEqual({ closed: [], broken: [] });
  });
});
