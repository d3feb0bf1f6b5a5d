import { describe, expect, test, vi } from 'vitest';
import type { Delta } from '../../src/plans/delta.ts';
import { Transcript } from '../../src/plans/transcript.ts';
import { call, cancel, close, reasoning, refusal, start, text, transcriptOf } from './saying.ts';

describe('the fold', () => {
  test('of nothing', () => {
    const transcript = new Transcript();
    expect(transcript).toMatchObject({ text: '', refusal: '', reasoning: '', size: 0, hasText: false });
    expect(transcript.finish).toBeUndefined();
    expect(transcript.usage).toBeUndefined();
    expect(transcript.toolCalls).toEqual([]);
    expect(transcript.openCalls).toEqual([]);
  });

  test('of prose, each kind by itself', () => {
    const transcript = transcriptOf(reasoning('Hm'), text('Yes'), reasoning('.'), text('!'), refusal('No.'));
    expect(transcript).toMatchObject({ text: 'Yes!', reasoning: 'Hm.', refusal: 'No.' });
  });

  test('of the end', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const transcript = transcriptOf({ kind: 'finish', reason: 'stop' }, { kind: 'usage', usage });
    expect(transcript).toMatchObject({ finish: 'stop', usage });
  });

  test('of calls whose fragments are interleaved', () => {
    const transcript = transcriptOf(
      [start(0, 'weather'), start(1, 'now')],
      { kind: 'tool_arguments', index: 0, text: '{"city":' },
      { kind: 'tool_arguments', index: 1, text: '{}' },
      { kind: 'tool_arguments', index: 0, text: '"Paris"}' },
    );
    expect(transcript.toolCalls).toMatchObject([
      { index: 0, id: 'call_0', name: 'weather', arguments: '{"city":"Paris"}', state: 'open' },
      { index: 1, id: 'call_1', name: 'now', arguments: '{}', state: 'open' },
    ]);
  });

  test('counts every character it holds', () => {
    const transcript = transcriptOf(text('four'), reasoning('12'), refusal('x'), call(0, 'weather', '{}'));
    expect(transcript.size).toBe(9);
  });
});

describe('the state of calls', () => {
  test('open at first', () => {
    expect(transcriptOf(start(0, 'now')).openCalls).toHaveLength(1);
  });

  const transcript = transcriptOf(
    call(0, 'weather', '{}'),
    call(1, 'weather', '{'),
    call(2, 'weather', '{'),
    close(0),
    cancel(1),
  );

  test('open, closed and cut', () => {
    const numbers = (calls: readonly { index: number }[]) => calls.map(({ index }) => index);
    expect(numbers(transcript.closedCalls)).toEqual([0]);
    expect(numbers(transcript.openCalls)).toEqual([2]);
    expect(transcript.toolCalls.map(({ state }) => state)).toEqual(['closed', 'cancelled', 'open']);
  });

  test.each([
    ['arguments', { kind: 'tool_arguments', index: 7, text: '{' }],
    ['a close', close(7)],
    ['a cancel', cancel(7)],
  ] as const)('a call that was never started: %s', (_, delta) => {
    expect(() => transcriptOf(delta)).toThrow(new RangeError('no tool call 7 was started'));
  });
});

describe('what began after a call', () => {
  const followed = (...said: Parameters<typeof transcriptOf>) =>
    transcriptOf(...said).toolCalls.map((toolCall) => toolCall.followed);

  test.each<[string, Parameters<typeof transcriptOf>, (string | undefined)[]]>([
    ['nothing', [call(0, 'now')], [undefined]],
    ['nothing but thoughts', [call(0, 'now'), reasoning('Hm')], [undefined]],
    ['another call', [call(0, 'now'), call(1, 'now')], ['call', undefined]],
    ['text', [call(0, 'now'), text('So')], ['text']],
    ['a call and then text', [call(0, 'now'), call(1, 'now'), text('So')], ['text', 'text']],
    ['text and then a call', [call(0, 'now'), text('So'), call(1, 'now')], ['text', undefined]],
    ['text before it', [text('So'), call(0, 'now')], [undefined]],
  ])('%s', (_, said, expected) => {
    expect(followed(...said)).toEqual(expected);
  });
});

test.each([
  ['', false],
  [' \n\t', false],
  ['\u00a0', false],
  [' a', true],
])('%j is text that a continuation could hang on: %s', (said, expected) => {
  expect(transcriptOf(text(said)).hasText).toBe(expected);
});

test('what calls take in memory counts towards the size of a run, even if nothing is said in them', () => {
  const transcript = Transcript.of([{ kind: 'text', text: 'Kelp' }]);
  expect(transcript.exceeds(4)).toBe(false);
  transcript.fold({ kind: 'tool_start', index: 0, id: 'i'.repeat(10), name: 'n'.repeat(1_000) });
  expect(transcript.size).toBe(4);
  expect(transcript.exceeds(1_014)).toBe(true);
  const provided = Transcript.of([{ kind: 'provider_tool_start', id: 'i', name: 'n'.repeat(1_000) }]);
  expect(provided.exceeds(1_001)).toBe(true);
});

test.each([
  ['a', 1],
  ['é', 2],
  ['海', 3],
  ['🌊', 4],
])('%s counts as %i bytes, whichever part of an answer says it', (said, bytes) => {
  const parts: Delta[][] = [
    [text(said)],
    [reasoning(said)],
    [refusal(said)],
    [start(0, ''), ...call(0, '', said).slice(1)],
  ];
  for (const deltas of parts) {
    const transcript = new Transcript();
    let expected = 0;
    for (const delta of deltas) {
      transcript.fold(delta);
      if (delta.kind === 'tool_start') expected += 1024 + delta.id.length;
    }
    // The first check counts everything; later ones only add what came since.
    for (let more = 1; more <= 3; more++) {
      expect(transcript.exceeds(expected + more * bytes)).toBe(false);
      expect(transcript.exceeds(expected + more * bytes - 1)).toBe(true);
      transcript.fold(deltas.at(-1) as Delta);
    }
  }
});

test('the cost of a delta does not grow with the calls before it', () => {
  const transcript = new Transcript();
  const CALLS = 5_000;
  for (let index = 0; index < CALLS; index++) {
    transcript.fold({ kind: 'tool_start', index, id: `call_${index}`, name: 'forecast' });
    transcript.fold({ kind: 'tool_arguments', index, text: '{' });
  }
  const looked = new Set<number>();
  const text = { kind: 'text', text: '.' } as const;
  transcript.fold(text);
  for (const call of transcript.toolCalls) {
    expect(call.followed).toBe('text');
    Object.defineProperty(call, 'followed', {
      get: () => looked.add(call.index) && 'text',
      set: () => looked.add(call.index),
    });
  }
  for (let event = 0; event < 100; event++) transcript.fold(text);
  expect(looked.size).toBe(0);
  transcript.fold({ kind: 'tool_start', index: CALLS, id: 'call_last', name: 'forecast' });
  expect(looked.size).toBeLessThanOrEqual(1);
});

test('to give up many calls costs each of them the same', () => {
  const CALLS = 20_000;
  const transcript = new Transcript();
  for (let index = 0; index < CALLS; index++) transcript.fold(start(index, 'forecast'));
  // Any of these would visit all calls each time.
  const looks = [vi.spyOn(Array.prototype, 'filter'), vi.spyOn(Array.prototype, 'findLast')];
  try {
    for (let index = 0; index < CALLS; index++) transcript.fold(cancel(index));
    for (const look of looks) expect(look).not.toHaveBeenCalled();
  } finally {
    for (const look of looks) look.mockRestore();
  }
  expect(transcript.openCalls).toEqual([]);
});
