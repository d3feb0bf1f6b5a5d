import { describe, expect, it } from 'vitest';
import type { ApiHints, RunStay, RunSummary, TimelineEntry } from '../../src/status/snapshot.ts';

/** The page's modules are plain JavaScript. */
const load = async (name: string) => import(new URL(`../../src/status/page/${name}`, import.meta.url).href);

interface Lane {
  readonly attempt?: number;
  readonly outcome: string;
  readonly seam?: string;
  readonly joined_at_ms?: number;
  readonly bars: readonly { readonly kind: string; readonly from_ms: number; readonly to_ms: number }[];
  readonly gap?: { readonly from_ms: number; readonly to_ms: number; readonly isHealed: boolean };
}
interface Axis {
  readonly lanes: readonly Lane[];
  readonly omitted: number;
  readonly handovers: readonly { readonly at_ms: number }[];
  at(ms: number): number;
}
const { runAxis, ticksOf } = (await load('run-axis.js')) as {
  runAxis(run: RunStay, now_ms: number): Axis;
  ticksOf(length_ms: number): readonly number[];
};
const { courseSpans } = (await load('course-spans.js')) as {
  courseSpans(
    run: RunSummary,
    now_ms: number,
  ): readonly { readonly kind: string; readonly start: number; readonly size: number }[];
};
const { shownState } = (await load('run-state.js')) as {
  shownState(run: Partial<RunSummary>): {
    readonly label: string;
    readonly tone: string;
    readonly after: string;
  };
};
const { sparkPath, sparkText } = (await load('sparkline.js')) as {
  sparkPath(values: readonly number[]): string;
  sparkText(values: readonly number[], slot_ms: number): string;
};
const { commandsOf, linkTo } = (await load('api-hints.js')) as {
  commandsOf(api: ApiHints, hostname: string): { readonly first: string; resume(run: string): string };
  linkTo(template: string | undefined, run: { run: string; trace_id?: string }): string | undefined;
};

type Told = readonly [at_ms: number, kind: TimelineEntry['kind'], more?: Record<string, unknown>];

const stay = (entries: readonly Told[], ended_at_ms?: number) =>
  ({
    created_at_ms: 0,
    ...(ended_at_ms !== undefined && { ended_at_ms }),
    timeline: entries.map(([at_ms, kind, more]) => ({ at_ms, kind, ...more })),
  }) as unknown as RunStay;

const CUT: readonly Told[] = [
  [0, 'attempt', { attempt: 1, upstream: 'first' }],
  [5, 'answering'],
  [10, 'interrupted', { cause: 'connection_reset' }],
  [10, 'planned', { plan: 'R1' }],
];

describe('the axis of a run', () => {
  it('has a lane for each attempt, and one gap until the answer continues', () => {
    const { lanes, at } = runAxis(
      stay(
        [
          ...CUT,
          [12, 'attempt', { attempt: 2, upstream: 'first' }],
          [14, 'interrupted', { cause: 'rate_limited' }],
          [14, 'planned', { plan: 'R1' }],
          [16, 'attempt', { attempt: 3, upstream: 'second' }],
          [20, 'answering'],
          [20, 'recovered'],
          [40, 'whole', { seam: 'exact' }],
          [40, 'ended', { outcome: 'recovered' }],
        ],
        40,
      ),
      99,
    );
    expect(lanes).toMatchObject([
      {
        attempt: 1,
        outcome: 'interrupted',
        bars: [
          { kind: 'asking', from_ms: 0, to_ms: 5 },
          { kind: 'answering', from_ms: 5, to_ms: 10 },
        ],
        gap: { from_ms: 10, to_ms: 20, isHealed: true },
      },
      { attempt: 2, outcome: 'interrupted', bars: [{ kind: 'asking', from_ms: 12, to_ms: 14 }] },
      { attempt: 3, outcome: 'whole', joined_at_ms: 20, seam: 'exact' },
    ]);
    expect(lanes.map(({ gap }) => gap !== undefined)).toEqual([true, false, false]);
    expect([0, 10, 40, 99].map(at)).toEqual([0, 0.25, 1, 1]);
  });

  it('has a gap that stays open while nothing continues, and where the run was given up', () => {
    const waiting = runAxis(stay(CUT), 30).lanes[0];
    expect(waiting?.gap).toEqual({ from_ms: 10, to_ms: 30, isHealed: false });
    const failed = runAxis(stay([...CUT, [12, 'ended', { outcome: 'failed' }]], 12), 99).lanes[0];
    expect(failed?.gap).toEqual({ from_ms: 10, to_ms: 12, isHealed: false });
  });

  it('shows where a run came from another replica, and where it went to one', () => {
    const taken = runAxis(
      stay([
        [30, 'taken_over'],
        [31, 'interrupted', { cause: 'connection_reset', attempt: 0 }],
        [31, 'attempt', { attempt: 2 }],
        [35, 'answering'],
      ]),
      40,
    );
    expect(taken.handovers).toMatchObject([{ at_ms: 30 }]);
    expect(taken.lanes[0]).toMatchObject({ bars: [{ kind: 'elsewhere', from_ms: 0, to_ms: 31 }] });
    expect(taken.lanes[0]?.gap).toMatchObject({ from_ms: 31, to_ms: 35, isHealed: true });
    const left = runAxis(stay([...CUT, [50, 'ended', { outcome: 'superseded' }]], 50), 99);
    expect(left.handovers).toMatchObject([{ at_ms: 50 }]);
  });

  it('shows the last of many attempts, and has room for nothing at all', () => {
    const attempts = Array.from({ length: 20 }, (_, nth): Told => [nth, 'attempt', { attempt: nth + 1 }]);
    const { lanes, omitted } = runAxis(stay(attempts), 20);
    expect([lanes[0]?.attempt, lanes.length, omitted]).toEqual([9, 12, 8]);
    expect(runAxis(stay([]), 0)).toMatchObject({ lanes: [], handovers: [] });
  });

  it('has a few round ticks, however long it is', () => {
    expect(ticksOf(169)).toEqual([0, 50, 100, 150]);
    expect(ticksOf(13_000)).toEqual([0, 5000, 10_000]);
    for (const length_ms of [0, 1, 7, 1000, 59_999, 3_600_000, 86_400_000 * 30]) {
      const ticks = ticksOf(length_ms);
      expect(ticks.length).toBeGreaterThan(0);
      expect(ticks.length).toBeLessThanOrEqual(6);
    }
  });
});

describe('the course of a run', () => {
  const run = (course: RunSummary['course'], more: Partial<RunSummary> = {}) =>
    ({ created_at_ms: 0, taken_over: false, course, ...more }) as RunSummary;

  it('turns into a gap at an interruption, and back when the answer continues', () => {
    const spans = courseSpans(
      run([
        ['asking', 0],
        ['answering', 10],
        ['interrupted', 50],
        ['waiting', 50],
        ['asking', 60],
        ['answering', 75],
      ]),
      100,
    );
    expect(spans).toEqual([
      { kind: 'asking', start: 0, size: 0.1 },
      { kind: 'answering', start: 0.1, size: 0.4 },
      { kind: 'gap', start: 0.5, size: 0.25 },
      { kind: 'answering', start: 0.75, size: 0.25 },
    ]);
  });

  it('begins elsewhere after a takeover, and ends with an open gap where nothing has continued', () => {
    const course = [
      ['asking', 50],
      ['interrupted', 60],
      ['ended', 100],
    ] as const;
    const spans = courseSpans(run(course, { taken_over: true, ended_at_ms: 100 }), 999);
    expect(spans.map(({ kind, start }) => [kind, start])).toEqual([
      ['elsewhere', 0],
      ['asking', 0.5],
      ['open', 0.6],
    ]);
  });
});

describe('the state of a run', () => {
  it.each([
    [{ state: 'asking', interruptions: 0, recoveries: 0 }, 'asking', 'info'],
    [{ state: 'answering', interruptions: 0, recoveries: 0 }, 'answering', 'good'],
    [{ state: 'asking', interruptions: 1, recoveries: 0 }, 'recovering', 'warn'],
    [{ state: 'waiting', interruptions: 1, recoveries: 0 }, 'waiting', 'warn'],
    [{ state: 'answering', interruptions: 1, recoveries: 1 }, 'rescued', 'rescued'],
    [{ state: 'waiting', interruptions: 2, recoveries: 1 }, 'waiting', 'warn'],
    [{ state: 'ended', outcome: 'recovered', interruptions: 1, recoveries: 1 }, 'recovered', 'rescued'],
    [{ state: 'ended', outcome: 'handed_over', interruptions: 0, recoveries: 0 }, 'handed over', 'quiet'],
  ] as const)('of %j is %s', (run, label, tone) => {
    expect(shownState(run)).toMatchObject({ label, tone });
  });

  it('says what it has been through', () => {
    const run = { state: 'answering', recoveries: 1, cause: 'connection_reset' } as const;
    expect(shownState({ ...run, interruptions: 1 }).after).toBe('after connection reset');
    expect(shownState({ ...run, interruptions: 3 }).after).toBe('after connection reset + 2 more');
  });
});

describe('a sparkline', () => {
  it('has a bar for each value that is not 0, as high as its share of the largest', () => {
    expect(sparkPath([0, 8, 4])).toBe('M4 16v-16h3V16zM8 16v-8h3V16z');
    expect(sparkPath([0, 0])).toBe('');
    expect(sparkPath([1000, 1])).toContain('v-1.5');
    expect(sparkText([...Array<number>(29).fill(0), 1200], 30_000)).toBe('1,200 in the last 15 min');
  });
});

describe('what can be copied and followed', () => {
  it('has the address of the page where the replica listens on every one', () => {
    const api = (url: string) => ({ url, try: `curl '${url}/v1/x'`, resume: `curl '${url}/runs/{run_id}'` });
    const { first, resume } = commandsOf(api('http://0.0.0.0:8080'), 'holdfast.internal');
    expect(first).toBe("curl 'http://holdfast.internal:8080/v1/x'");
    expect(resume('run_1')).toBe("curl 'http://holdfast.internal:8080/runs/run_1'");
    expect(commandsOf(api('http://127.0.0.1:8080'), 'elsewhere').first).toContain('127.0.0.1:8080');
  });

  it('is a link where there is all that its template asks for', () => {
    expect(linkTo('https://x/{run_id}', { run: 'run_1' })).toBe('https://x/run_1');
    expect(linkTo('https://x/{trace_id}', { run: 'run_1', trace_id: 'abc' })).toBe('https://x/abc');
    expect(linkTo('https://x/{trace_id}', { run: 'run_1' })).toBeUndefined();
    expect(linkTo(undefined, { run: 'run_1' })).toBeUndefined();
  });
});
