import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Owner, RunId } from '../../src/checkpoint/store.ts';
import type { Outcome } from '../../src/plans/outcome.ts';
import { RunBoard } from '../../src/status/run-board.ts';
import {
  STATUS_VERSION,
  type StatusDocument,
  type StoreState,
  type TargetStatus,
} from '../../src/status/snapshot.ts';
import {
  latestStay,
  mergedRuns,
  mergedStatus,
  mergedTaskDetail,
  mergedTasks,
} from '../../src/workers/merged-documents.ts';
import { CASES } from '../cases.ts';
import { attempt, begin, RESET, runId, StandingTime } from '../status/observed.ts';

const WORKERS = 3;
/** The stages of a run, in order; a run may stop after any of them. */
const COURSE = ['begin', 'attempt', 'answering', 'interrupted', 'planned', 'recovered', 'ended'] as const;

interface PlannedRun {
  readonly worker: number;
  readonly task: number;
  readonly outcome: Outcome;
  readonly gap_ms: number;
}

const plannedRun = fc.record({
  worker: fc.nat({ max: WORKERS - 1 }),
  task: fc.nat({ max: 2 }),
  outcome: fc.constantFrom<Outcome>('complete', 'recovered', 'salvaged', 'failed', 'cancelled'),
  gap_ms: fc.nat({ max: 70_000 }),
});

/** One board that sees all runs, and one per worker that sees only that worker's runs. */
function boards() {
  const time = new StandingTime();
  const boardOf = () => new RunBoard({ time, content: true });
  return { time, whole: boardOf(), parts: Array.from({ length: WORKERS }, boardOf) };
}

/** Plays the stages of a run on one board. */
function playedOn(board: RunBoard, { task, outcome, gap_ms }: PlannedRun, nth: number, now_ms: () => number) {
  let watch: ReturnType<typeof begin>['watch'] | undefined;
  return (move: (typeof COURSE)[number]) => {
    if (move === 'begin') {
      const step = { task: `task ${task}`, number: nth + 1, owner: 'an owner' as Owner };
      watch = begin(board, { run: runId(nth), step, created_at_ms: now_ms() }).watch;
    } else if (move === 'attempt') watch?.attempt(attempt(1));
    else if (move === 'answering') watch?.answering();
    else if (move === 'interrupted')
      watch?.attemptEnded({ outcome: 'interrupted', added: 4, interruption: RESET });
    else if (move === 'planned') watch?.planned({ plan: 'R1', wait_ms: 0 });
    else if (move === 'recovered') {
      watch?.attempt(attempt(2));
      watch?.answering();
      watch?.recovered({ plan: 'R1', mode: 'prefill', gap_ms });
    } else watch?.ended({ outcome });
  };
}

const REST = {
  version: STATUS_VERSION,
  name: 'holdfast',
  release: '1',
  active_requests: 0,
  content: true,
  store: { name: 'file', state: 'ok', failed_appends: 0 },
  targets: [],
  fleet: [],
  api: { url: '', try: '', resume: '' },
  links: {},
} as const;

const OWN = { status: 'serving', now_ms: 1, started_at_ms: 0, uptime_s: 0 } as const;

const statusOf = (board: RunBoard): StatusDocument => ({
  ...REST,
  ...OWN,
  runs: board.counts,
  interruptions: board.interruptions,
  recovery_gaps: board.gaps,
  history: board.history.read(),
});

const withoutKeys = <Run extends { readonly key: number; readonly run: RunId }>(runs: readonly Run[]) =>
  runs.map(({ key: _, ...run }) => run).sort((one, other) => (one.run < other.run ? -1 : 1));

test('what workers have seen apart is what one process would have seen', () => {
  const pace_ms = fc.constantFrom(0, 1, 20_000);
  const moves = fc.array(fc.tuple(fc.nat({ max: 7 }), pace_ms), { minLength: 1, maxLength: 60, size: 'max' });
  let shared = 0;
  fc.assert(
    fc.property(fc.array(plannedRun, { minLength: 1, maxLength: 6 }), moves, (plans, order) => {
      const { time, whole, parts } = boards();
      const runs = plans.map((plan, nth) => {
        const seen = [whole, parts[plan.worker] as RunBoard];
        return { left: [...COURSE], play: seen.map((board) => playedOn(board, plan, nth, time.wall)) };
      });
      for (const [nth, delay_ms] of order) {
        time.wall_ms += delay_ms;
        const { left, play } = runs[nth % runs.length] as (typeof runs)[number];
        const move = left.shift();
        if (move) for (const each of play) each(move);
      }

      const [first, ...others] = parts.map(statusOf);
      if (!first) throw new Error('there are no workers');
      const merged = mergedStatus([first, ...others], OWN);
      const expected = statusOf(whole);
      expect({ ...merged, interruptions: [] }).toEqual({ ...expected, interruptions: [] });
      expect(new Set(merged.interruptions)).toEqual(new Set(expected.interruptions));

      const now_ms = time.wall();
      const told = parts.map((board, worker) => ({ worker, document: board.runs() }));
      const all = mergedRuns(told, now_ms);
      expect(withoutKeys(all.live)).toEqual(withoutKeys(whole.runs().live));
      expect(withoutKeys(all.ended)).toEqual(withoutKeys(whole.runs().ended));
      const keys = [...all.live, ...all.ended].map(({ key }) => key);
      expect(new Set(keys).size).toBe(keys.length);

      const tasks = mergedTasks(
        parts.map((board) => board.tasks.read()),
        now_ms,
      );
      expect(new Set(tasks.tasks.map(({ task }) => task))).toEqual(
        new Set(whole.tasks.read().tasks.map(({ task }) => task)),
      );
      for (const { task, ...summary } of tasks.tasks) {
        const one = whole.tasks.detail(task);
        const details = parts.flatMap((board, worker) => {
          const document = board.tasks.detail(task);
          return document ? [{ worker, document }] : [];
        });
        if (details.length > 1) shared++;
        // If several steps began in the same millisecond, any of them may count as the last.
        if (one?.state !== 'failed' && summary.state !== 'failed') expect(one).toMatchObject(summary);
        const detail = mergedTaskDetail(details);
        expect(detail?.shown.map(({ number, stays }) => [number, stays.map(({ run }) => run)])).toEqual(
          one?.shown.map(({ number, stays }) => [number, stays.map(({ run }) => run)]),
        );
      }
    }),
    { numRuns: CASES },
  );
  expect(shared).toBeGreaterThan(CASES / 4);
});

test('a step that one worker has answered and others replay is one step', () => {
  const { parts } = boards();
  const step = (number: number) => ({ task: 'a task', number, owner: 'an owner' as Owner });
  const [first, second, third] = parts as [RunBoard, RunBoard, RunBoard];
  for (const [board, number] of [
    [first, 1],
    [second, 2],
    [first, 3],
    [second, 60],
  ] as const)
    begin(board, { run: runId(number), step: step(number) }).watch.ended({ outcome: 'complete' });
  for (const number of [1, 2, 3]) third.replayed({ step: step(number), tokens: 10 });
  second.replayed({ step: step(1), tokens: 10 });
  const { tasks } = mergedTasks(
    parts.map((board) => board.tasks.read()),
    0,
  );
  expect(tasks).toMatchObject([{ steps: 4, tokens_saved: 40 }]);
  const told = parts.flatMap((board, worker) => {
    const document = board.tasks.detail(tasks[0]?.task ?? '');
    return document ? [{ worker, document }] : [];
  });
  expect(mergedTaskDetail(told)).toMatchObject({ steps: 4 });
});

test('of a run that moved between workers, the stay is shown that has not ended', () => {
  const { time, parts } = boards();
  const [from, to] = parts as [RunBoard, RunBoard];
  const left = begin(from);
  left.watch.ended({ outcome: 'handed_over' });
  const back = begin(to);
  time.wall_ms += 1000;
  const told = () =>
    [from, to].map((board, worker) => {
      const document = board.detail(runId(1));
      if (!document) throw new Error('the board does not know the run');
      return { worker, document };
    });
  expect(latestStay(told())?.state).toBe('asking');
  back.watch.ended({ outcome: 'complete' });
  expect(latestStay(told())?.outcome).toBe('complete');
  expect(latestStay([])).toBeUndefined();
});

const target = (changes: Partial<TargetStatus>): TargetStatus => ({
  upstream: 'first',
  model: '',
  state: 'closed',
  alone: false,
  attempts: 0,
  errors: 0,
  ...changes,
});

const status = (changes: Partial<StatusDocument>): StatusDocument => ({
  ...statusOf(boards().whole),
  ...changes,
});

test('a target and the store are as the worker has them that they do worst for', () => {
  const failing: StoreState = { name: 'file', state: 'failing', reason: 'disk full', failed_appends: 3 };
  const failure = { cause: 'connection_reset', evidence: 'transport' } as const;
  const merged = mergedStatus(
    [
      status({
        targets: [
          target({ attempts: 2, first_token: { p50_ms: 5, p95_ms: 9 } }),
          target({ upstream: 'second', attempts: 7 }),
        ],
      }),
      status({
        store: failing,
        targets: [
          target({ attempts: 3, errors: 3, state: 'open', last_failure: { at_ms: 7, ...failure } }),
          target({ upstream: 'second', state: 'half_open', last_failure: { at_ms: 1, ...failure } }),
        ],
      }),
    ],
    OWN,
  );
  expect(merged.store).toEqual(failing);
  expect(merged.targets).toEqual([
    target({
      state: 'open',
      attempts: 5,
      errors: 3,
      first_token: { p50_ms: 5, p95_ms: 9 },
      last_failure: { at_ms: 7, ...failure },
    }),
    target({
      upstream: 'second',
      state: 'half_open',
      attempts: 7,
      last_failure: { at_ms: 1, ...failure },
    }),
  ]);
});

test('each worker is in the list of replicas as it knows itself, and others once', () => {
  const member = (name: string, changes: object = {}) => ({
    name,
    self: false,
    state: 'serving' as const,
    release: '1',
    started_at_ms: 0,
    ...changes,
  });
  const merged = mergedStatus(
    [
      status({
        fleet: [
          member('host/1', { self: true, runs: 4 }),
          member('host/2', { state: 'dead' }),
          member('far'),
        ],
      }),
      status({
        fleet: [member('far'), member('host/1', { runs: 1 }), member('host/2', { self: true, runs: 5 })],
      }),
    ],
    OWN,
  );
  expect(merged.fleet).toEqual([
    member('far'),
    member('host/1', { self: true, runs: 4 }),
    member('host/2', { self: true, runs: 5 }),
  ]);
});
