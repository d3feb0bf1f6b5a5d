import { describe, expect, it } from 'vitest';
import type { RunStay, TaskStep, TimelineEntry } from '../../src/status/snapshot.ts';

interface Span {
  readonly kind?: string;
  readonly from_ms: number;
  readonly to_ms: number;
}

interface Axis {
  at(ms: number): number;
  readonly cuts: readonly { readonly start: number; readonly width: number; readonly rest_ms: number }[];
}

/** The page's modules are plain JavaScript. */
const PAGE = new URL('../../src/status/page/', import.meta.url);
const { timeAxis } = (await import(new URL('time-axis.js', PAGE).href)) as {
  timeAxis(spans: readonly Span[]): Axis;
};
const { spansOf } = (await import(new URL('step-spans.js', PAGE).href)) as {
  spansOf(step: TaskStep, now_ms: number): readonly Span[];
};

describe('an axis of time', () => {
  it('is linear where rests are short', () => {
    const axis = timeAxis([
      { from_ms: 1000, to_ms: 1400 },
      { from_ms: 1500, to_ms: 2000 },
    ]);
    expect([1000, 1250, 1500, 2000].map(axis.at)).toEqual([0, 0.25, 0.5, 1]);
    expect(axis.cuts).toEqual([]);
  });

  it('shortens a long rest, and says how long it was', () => {
    const night_ms = 36_000_000;
    const axis = timeAxis([
      { from_ms: 0, to_ms: 5000 },
      { from_ms: 5000 + night_ms, to_ms: 10_000 + night_ms },
    ]);
    expect(axis.cuts).toMatchObject([{ rest_ms: night_ms }]);
    const [{ start, width } = { start: 0, width: 1 }] = axis.cuts;
    expect(axis.at(5000)).toBeCloseTo(start);
    expect(axis.at(5000 + night_ms)).toBeCloseTo(start + width);
    expect(width).toBeLessThan(0.2);
    expect(axis.at(10_000 + night_ms)).toBe(1);
  });

  it('shows one long rest as well among many short ones', () => {
    const spans = Array.from({ length: 9 }, (_, nth) => ({ from_ms: nth * 1010, to_ms: nth * 1010 + 1000 }));
    const axis = timeAxis([...spans, { from_ms: 1e9, to_ms: 1e9 + 1000 }]);
    expect(axis.cuts.map(({ width }) => Math.round(width * 10))).toEqual([2]);
  });

  it('has a place for moments, even for nothing else', () => {
    const axis = timeAxis([7, 7, 90_000].map((ms) => ({ from_ms: ms, to_ms: ms })));
    expect([7, 90_000].map(axis.at)).toEqual([0, 1]);
  });

  it('leaves steps half of its length at least, however many rests there are', () => {
    const spans = Array.from({ length: 50 }, (_, nth) => ({ from_ms: nth * 1e6, to_ms: nth * 1e6 + 1000 }));
    const rested = timeAxis(spans).cuts.reduce((sum, { width }) => sum + width, 0);
    expect(rested).toBeLessThan(0.5);
  });
});

describe('the bars of a step', () => {
  const stay = (entries: readonly (readonly [number, TimelineEntry['kind']])[], ended_at_ms?: number) =>
    ({
      created_at_ms: 0,
      ...(ended_at_ms !== undefined && { ended_at_ms }),
      timeline: entries.map(([at_ms, kind]) => ({ at_ms, kind })),
    }) as unknown as RunStay;
  const step = (...stays: RunStay[]): TaskStep => ({ number: 1, replays: 0, stays });
  const shown = (spans: readonly Span[]) => spans.map(({ kind, from_ms, to_ms }) => [kind, from_ms, to_ms]);

  it('are a gap from an interruption until the answer goes on, whatever is tried in between', () => {
    const entries = [
      [0, 'attempt'],
      [5, 'answering'],
      [9, 'interrupted'],
      [9, 'planned'],
      [11, 'attempt'],
      [20, 'answering'],
      [20, 'recovered'],
      [30, 'whole'],
      [31, 'ended'],
    ] as const;
    expect(shown(spansOf(step(stay(entries, 31)), 99))).toEqual([
      ['asking', 0, 5],
      ['answering', 5, 9],
      ['gap', 9, 20],
      ['answering', 20, 30],
    ]);
  });

  it('last until now while it is answered, and until its end where it was given up', () => {
    const begun = [
      [0, 'attempt'],
      [5, 'answering'],
    ] as const;
    expect(shown(spansOf(step(stay(begun)), 8))).toEqual([
      ['asking', 0, 5],
      ['answering', 5, 8],
    ]);
    const lost = [...begun, [7, 'interrupted'], [7, 'planned'], [12, 'ended']] as const;
    expect(shown(spansOf(step(stay(lost, 12)), 99)).at(-1)).toEqual(['gap', 7, 12]);
  });

  it('are those of all stays of its run', () => {
    const first = stay(
      [
        [0, 'attempt'],
        [5, 'ended'],
      ],
      5,
    );
    const second = stay([
      [8, 'taken_over'],
      [8, 'interrupted'],
      [8, 'attempt'],
      [10, 'answering'],
    ]);
    expect(shown(spansOf(step(first, second), 12))).toEqual([
      ['asking', 0, 5],
      ['gap', 8, 10],
      ['answering', 10, 12],
    ]);
  });
});
