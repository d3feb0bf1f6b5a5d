import { describe, expect, test } from 'vitest';
import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import { type FoldedSegment, foldJournal } from '../../src/checkpoint/journal-fold.ts';
import type { Delta, Segment } from '../../src/plans/delta.ts';

const FIRST: Segment = { attempt: 1, upstream: 'a', mode: 'first' };
const NEXT: Segment = {
  attempt: 3,
  upstream: 'b',
  model: 'm',
  mode: 'nudge',
  plan: 'R1',
  cause: 'connection_reset',
};

const begins = (segment: Segment): Delta => ({ kind: 'segment', ...segment });
const says = (text: string): Delta => ({ kind: 'text', text });
const recordOf = (...events: readonly Delta[][]): JournalRecord => ({
  seq: events.length,
  events: events.map((deltas) => ({ deltas })),
});
const segmentsOf = (...events: readonly Delta[][]): readonly FoldedSegment[] =>
  foldJournal([recordOf(...events)]).segments;

describe('the segments of an answer', () => {
  test('spans the first event of a segment to the last one that shows something of it', () => {
    const segments = segmentsOf(
      [],
      [begins(FIRST), says('Kelp')],
      [says(' holds')],
      [],
      [begins(NEXT), says(' fast.')],
      [{ kind: 'finish', reason: 'stop' }],
    );
    expect(segments).toEqual([
      {
        ...FIRST,
        from: 2,
        to: 3,
        characters: { text: 10, refusal: 0, reasoning: 0, calls: 0 },
        discarded: false,
      },
      {
        ...NEXT,
        from: 5,
        to: 5,
        characters: { text: 6, refusal: 0, reasoning: 0, calls: 0 },
        discarded: false,
      },
    ]);
  });

  test('distinguishes text from reasoning, refusals and the arguments of calls', () => {
    const [segment] = segmentsOf(
      [begins(FIRST), { kind: 'reasoning', text: 'Hm.' }],
      [says('Yes')],
      [{ kind: 'refusal', text: 'No.' }],
      [
        { kind: 'tool_start', index: 0, id: 'call_a', name: 'forecast' },
        { kind: 'tool_arguments', index: 0, text: '{}' },
        { kind: 'tool_close', index: 0, proof: 3 },
      ],
      [{ kind: 'tool_start', index: 1, id: 'call_b', name: 'forecast' }],
      [{ kind: 'tool_cancel', index: 1 }],
    );
    expect(segment).toMatchObject({
      from: 1,
      to: 5,
      characters: { text: 3, refusal: 3, reasoning: 3, calls: 2 },
    });
  });

  test('marks what was thrown away when the answer was begun anew', () => {
    const anew: Segment = { ...NEXT, mode: 'restart', plan: 'R4' };
    const segments = segmentsOf(
      [begins(FIRST), { kind: 'reasoning', text: 'Hm.' }],
      [begins(NEXT), { kind: 'reasoning', text: 'Well.' }],
      [begins(anew), says('Kelp.')],
    );
    expect(segments.map(({ discarded }) => discarded)).toEqual([true, true, false]);
  });

  test('is not known of what was stored without', () => {
    expect(segmentsOf([says('Kelp')], [says(' holds')])).toEqual([]);
    const [segment] = segmentsOf([says('Kelp')], [begins(NEXT), says(' holds')]);
    expect(segment).toMatchObject({ from: 2, characters: { text: 6 } });
  });
});
