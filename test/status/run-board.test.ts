import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { BoardChanges, RunBoard } from '../../src/status/run-board.ts';
import { attempt, begin, observedRun, RESET, runId, StandingTime } from './observed.ts';

function createBoard(content = false) {
  const time = new StandingTime();
  return { time, board: new RunBoard({ time, content }) };
}

describe('a run on the board', () => {
  it('has a timeline from its first attempt over a recovery to its end', () => {
    const { board, time } = createBoard();
    const at_ms = time.wall_ms;
    const { watch, answer } = begin(board);
    watch.attempt(attempt(1));
    expect(board.runs().live).toMatchObject([{ state: 'asking', attempt: 1, characters: 0 }]);
    watch.answering();
    answer.characters = 120;
    answer.tool_calls = 1;
    expect(board.runs().live).toMatchObject([{ state: 'answering', characters: 120, tool_calls: 1 }]);
    time.wall_ms += 5000;
    watch.attemptEnded({ outcome: 'interrupted', added: 120, interruption: { ...RESET, status: 502 } });
    expect(board.runs().live).toMatchObject([
      { state: 'interrupted', state_at_ms: at_ms + 5000, interruptions: 1, cause: 'connection_reset' },
    ]);
    expect(board.counts).toMatchObject({ live: 1, recovering: 1 });
    watch.planned({ plan: 'R1', wait_ms: 250.4 });
    expect(board.runs().live).toMatchObject([{ state: 'waiting', plan: 'R1' }]);
    time.wall_ms += 250;
    watch.attempt(attempt(2, 'second'));
    watch.answering();
    watch.recovered({ plan: 'R1', mode: 'prefill', gap_ms: 400.6 });
    expect(board.counts).toMatchObject({ live: 1, recovering: 0 });
    watch.attemptEnded({ outcome: 'complete', added: 30, seam: 'exact' });
    expect(board.runs().live).toMatchObject([{ state: 'finishing', upstream: 'second', attempt: 2 }]);
    answer.characters = 150;
    watch.ended({ outcome: 'recovered', finish: 'stop' });
    answer.characters = 0;

    expect(board.runs()).toMatchObject({
      live: [],
      ended: [{ state: 'ended', outcome: 'recovered', ended_at_ms: at_ms + 5250, characters: 150 }],
    });
    expect(board.counts).toEqual({ live: 0, recovering: 0, ended: { recovered: 1 }, unwatched: 0 });
    expect(board.interruptions).toEqual([{ upstream: 'first', cause: 'connection_reset', count: 1 }]);
    expect(board.gaps).toMatchObject({ count: 1, sum_ms: 401, max_ms: 401 });
    expect(board.gaps.buckets.filter(({ count }) => count > 0)).toEqual([{ le_ms: 500, count: 1 }]);
    const later_ms = at_ms + 5000;
    expect(board.detail(runId(1))?.timeline).toEqual([
      {
        kind: 'attempt',
        at_ms,
        attempt: 1,
        upstream: 'first',
        mode: 'first',
        model: 'gpt-4o',
        compressed: false,
      },
      { kind: 'answering', at_ms, attempt: 1 },
      {
        kind: 'interrupted',
        at_ms: later_ms,
        attempt: 1,
        upstream: 'first',
        cause: 'connection_reset',
        phase: 'text',
        evidence: 'transport',
        detail: 'ECONNRESET',
        status: 502,
        added: 120,
      },
      { kind: 'planned', at_ms: later_ms, plan: 'R1', wait_ms: 250 },
      expect.objectContaining({ kind: 'attempt', attempt: 2, upstream: 'second', mode: 'prefill' }),
      { kind: 'answering', at_ms: later_ms + 250, attempt: 2 },
      { kind: 'recovered', at_ms: later_ms + 250, plan: 'R1', mode: 'prefill', gap_ms: 401 },
      { kind: 'whole', at_ms: later_ms + 250, attempt: 2, added: 30, seam: 'exact' },
      { kind: 'ended', at_ms: later_ms + 250, outcome: 'recovered', finish: 'stop' },
    ]);
  });

  it('knows its course, its recoveries and its trace', () => {
    const { board, time } = createBoard();
    const at_ms = time.wall_ms;
    const trace_id = '0af7651916cd43dd8448eb211c80319c';
    const { watch } = begin(board, { traceparent: `00-${trace_id}-b7ad6b7169203331-01` });
    watch.attempt(attempt(1));
    watch.answering();
    time.wall_ms += 5;
    watch.attemptEnded({ outcome: 'interrupted', added: 1, interruption: RESET });
    watch.planned({ plan: 'R1', wait_ms: 0 });
    watch.attempt(attempt(2));
    watch.answering();
    watch.recovered({ plan: 'R1', mode: 'prefill', gap_ms: 0 });
    const states = ['asking', 'answering', 'interrupted', 'waiting', 'asking', 'answering'];
    const [run] = board.runs().live;
    expect(run).toMatchObject({ interruptions: 1, recoveries: 1 });
    expect(run?.course).toEqual(states.map((state, nth) => [state, nth < 2 ? at_ms : at_ms + 5]));
    expect(board.detail(runId(1))).toMatchObject({ trace_id });
    // If the client sends no usable trace context, the replica exports a trace of its own.
    watch.identified({ trace_id: 'f'.repeat(32), span_id: 'e'.repeat(16) });
    expect(board.detail(runId(1))).toMatchObject({ trace_id: 'f'.repeat(32) });
    watch.ended({ outcome: 'recovered' });
    expect(board.history.read()).toMatchObject({
      begun: expect.arrayContaining([1]),
      interrupted: expect.arrayContaining([1]),
      rescued: expect.arrayContaining([1]),
    });
    expect(board.targets.read()).toMatchObject([{ upstream: 'first', attempts: 2, errors: 1 }]);
  });

  it('says that it was taken over, and why it was given up', () => {
    const { board } = createBoard();
    const { watch } = begin(board, { taken_over: { epoch: 3, after_event: 17 } });
    watch.attemptEnded({ outcome: 'interrupted', added: 0, interruption: RESET });
    watch.planned({ plan: 'give_up', why: 'attempts', wait_ms: 0 });
    expect(board.counts).toMatchObject({ recovering: 0 });
    watch.ended({ outcome: 'failed' });
    expect(board.detail(runId(1))).toMatchObject({
      taken_over: true,
      outcome: 'failed',
      plan: 'give_up',
      timeline: [
        { kind: 'taken_over', epoch: 3, after_event: 17 },
        { kind: 'interrupted' },
        { kind: 'planned', plan: 'give_up', why: 'attempts' },
        { kind: 'ended', outcome: 'failed' },
      ],
    });
  });

  it('is listed by its latest stay when it comes back', () => {
    const { board } = createBoard();
    const first = begin(board);
    begin(board, { run: runId(2) });
    const second = begin(board);
    first.watch.ended({ outcome: 'superseded' });
    expect(board.detail(runId(1))).toMatchObject({ key: 3, state: 'asking' });
    second.watch.ended({ outcome: 'complete' });
    expect(board.runs().ended.map(({ key }) => key)).toEqual([3, 1]);
    expect(board.detail(runId(1))).toMatchObject({ key: 3, outcome: 'complete' });
    expect(board.detail(runId(9))).toBeUndefined();
  });

  it('shortens what clients and providers write, and takes control characters out of it', () => {
    const { board } = createBoard();
    const { watch } = begin(board, { model: `\u001b[2J\u202e${'x'.repeat(100_000)}` });
    watch.attempt({ ...attempt(1), asked_model: `a\nb\u2028c\ud800` });
    const evidence = { kind: 'error_event', type: 'y'.repeat(10_000) } as const;
    watch.attemptEnded({ outcome: 'interrupted', added: 0, interruption: { ...RESET, evidence } });
    watch.ended({ outcome: 'failed', finish: 'z'.repeat(10_000) });
    const detail = board.detail(runId(1));
    expect(detail?.model).toBe(`\ufffd[2J\ufffd${'x'.repeat(74)}…`);
    expect(detail?.timeline).toMatchObject([
      { model: 'a\ufffdb\ufffdc\ufffd' },
      { detail: `${'y'.repeat(59)}…` },
      { finish: `${'z'.repeat(39)}…` },
    ]);
  });

  it('shows the end of its text only where that was asked for, live and ended', () => {
    for (const content of [false, true]) {
      const { board } = createBoard(content);
      const { watch, answer } = begin(board);
      answer.text = `${'a'.repeat(10_000)}the end`;
      const shown = () => board.detail(runId(1))?.text;
      const expected = content ? `${'a'.repeat(3993)}the end` : undefined;
      expect(shown()).toBe(expected);
      watch.ended({ outcome: 'complete' });
      answer.text = '';
      expect(shown()).toBe(expected);
      expect(JSON.stringify(board.runs())).not.toContain('the end');
    }
  });
});

describe('the memory of the board', () => {
  it('is bounded: it forgets ended runs, and the middle of long timelines', () => {
    const { board } = createBoard();
    for (let count = 0; count < 10_000; count++) {
      const { watch } = begin(board, { run: runId(count) });
      watch.attempt(attempt(1));
      watch.ended({ outcome: count % 2 ? 'complete' : 'failed' });
    }
    const { live, ended } = board.runs();
    expect(live).toEqual([]);
    expect(ended).toHaveLength(200);
    expect(ended[0]?.run).toBe(runId(9999));
    expect(board.counts.ended).toEqual({ complete: 5000, failed: 5000 });
    expect(board.detail(runId(0))).toBeUndefined();

    const { watch } = begin(board, { run: runId('long') });
    for (let number = 1; number <= 100; number++) watch.attempt(attempt(number));
    const detail = board.detail(runId('long'));
    expect(detail?.timeline).toHaveLength(60);
    expect(detail?.omitted).toBe(40);
    expect(detail?.timeline[0]).toMatchObject({ attempt: 1 });
    expect(detail?.timeline.at(-1)).toMatchObject({ attempt: 100 });
  });

  it('is bounded: beyond 10,000 live runs it counts those that it does not watch', () => {
    const { board } = createBoard();
    const first = begin(board);
    for (let count = 1; count < 10_000; count++) begin(board, { run: runId(count) });
    expect(board.begin(observedRun())).toBeUndefined();
    expect(board.counts).toMatchObject({ live: 10_000, unwatched: 1 });
    first.watch.ended({ outcome: 'complete' });
    expect(board.begin(observedRun())).toBeDefined();
  });

  it('lets go of the answers of ended runs', async () => {
    const { board } = createBoard();
    const answer = (() => {
      const run = observedRun();
      board.begin(run)?.ended({ outcome: 'complete' });
      return new WeakRef(run.answer);
    })();
    expect(await isCollected(answer)).toBe(true);
  });
});

describe('changes of the board', () => {
  it('are told once: what runs came into, what they have said, and what happened', () => {
    const { board } = createBoard();
    const { watch, answer } = begin(board);
    const changes = new BoardChanges();
    board.changes = changes;
    expect(changes.collect(board.live)).toEqual({ progress: [{ key: 1, characters: 0, tool_calls: 0 }] });
    expect(changes.collect(board.live)).toEqual({});
    answer.characters = 7;
    expect(changes.collect(board.live)).toEqual({ progress: [{ key: 1, characters: 7, tool_calls: 0 }] });
    watch.attempt(attempt(1));
    answer.characters = 8;
    expect(changes.collect(board.live)).toEqual({
      changed: [expect.objectContaining({ key: 1, state: 'asking', characters: 8 })],
      entries: [expect.objectContaining({ key: 1, run: runId(1), kind: 'attempt' })],
    });
    watch.ended({ outcome: 'complete' });
    expect(changes.collect(board.live)).toMatchObject({ changed: [{ state: 'ended' }] });
    expect(changes.collect(board.live)).toEqual({});
  });

  it('are not remembered where there are too many', () => {
    const { board } = createBoard();
    const changes = new BoardChanges();
    board.changes = changes;
    const { watch } = begin(board);
    for (let count = 0; count <= 5000; count++) watch.answering();
    expect(changes.collect(board.live)).toBeUndefined();
    watch.answering();
    expect(changes.collect(board.live)?.entries).toHaveLength(1);
  });
});

/** Whether the garbage collector reclaims it. */
async function isCollected(reference: WeakRef<object>): Promise<boolean> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 10 && reference.deref(); round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  return reference.deref() === undefined;
}
