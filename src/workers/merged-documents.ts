import { ENDED_MAX } from '../status/run-board.ts';
import type {
  FleetMember,
  InterruptionCount,
  RecoveryGaps,
  RunCounts,
  RunDetail,
  RunHistory,
  RunStay,
  RunSummary,
  RunsDocument,
  StatusDocument,
  StoreState,
  TargetStatus,
  TaskDetail,
  TaskStep,
  TaskSummary,
  TasksDocument,
} from '../status/snapshot.ts';
import { StepNumbers } from '../status/step-numbers.ts';
import { TASKS_MAX } from '../status/task-board.ts';

/** A document of one worker. `worker` is a number that is never reused. */
export interface Told<Document> {
  readonly worker: number;
  readonly document: Document;
}

/** Enough for workers that run for years. */
const KEYS_PER_WORKER = 2 ** 32;

/** A run key that is unique across all workers. */
export const sharedKey = (worker: number, key: number): number => worker * KEYS_PER_WORKER + key;

const withSharedKey = <Run extends { readonly key: number }>(worker: number, run: Run): Run => ({
  ...run,
  key: sharedKey(worker, run.key),
});

/** At least one document. */
export function mergedStatus(
  documents: readonly [StatusDocument, ...StatusDocument[]],
  own: Pick<StatusDocument, 'status' | 'now_ms' | 'started_at_ms' | 'uptime_s'>,
): StatusDocument {
  const [first] = documents;
  return {
    ...first,
    ...own,
    active_requests: sumOf(documents, ({ active_requests }) => active_requests),
    runs: mergedCounts(documents.map(({ runs }) => runs)),
    interruptions: mergedInterruptions(documents.flatMap(({ interruptions }) => interruptions)),
    recovery_gaps: mergedGaps(documents.map(({ recovery_gaps }) => recovery_gaps)),
    history: mergedHistory(documents.map(({ history }) => history)),
    store: mergedStore(documents.map(({ store }) => store)),
    targets: mergedTargets(documents.flatMap(({ targets }) => targets)),
    fleet: mergedFleet(documents.map(({ fleet }) => fleet)),
  };
}

export const mergedRuns = (
  told: readonly Told<RunsDocument>[],
  now_ms: number,
): Omit<RunsDocument, 'version'> => ({
  now_ms,
  live: runsOf(told, 'live').sort((one, other) => one.created_at_ms - other.created_at_ms),
  ended: runsOf(told, 'ended')
    .sort((one, other) => (other.ended_at_ms ?? 0) - (one.ended_at_ms ?? 0))
    .slice(0, ENDED_MAX),
});

const runsOf = (told: readonly Told<RunsDocument>[], list: 'live' | 'ended'): RunSummary[] =>
  told.flatMap(({ worker, document }) => document[list].map((run) => withSharedKey(worker, run)));

export const mergedTasks = (
  documents: readonly TasksDocument[],
  now_ms: number,
): Omit<TasksDocument, 'version'> => ({
  now_ms,
  tasks: [
    ...Map.groupBy(
      documents.flatMap(({ tasks }) => tasks),
      ({ task }) => task,
    ).values(),
  ]
    .map(mergedTask)
    .sort((one, other) => other.step_at_ms - one.step_at_ms)
    .slice(0, TASKS_MAX),
});

/** A run's latest stay. A current stay is later than an ended one. */
export function latestStay(told: readonly Told<RunDetail>[]): RunDetail | undefined {
  const [latest] = told
    .map(({ worker, document }) => withSharedKey(worker, document))
    .sort(
      (one, other) =>
        Number(one.state === 'ended') - Number(other.state === 'ended') ||
        other.state_at_ms - one.state_at_ms,
    );
  return latest;
}

export function mergedTaskDetail(told: readonly Told<TaskDetail>[]): TaskDetail | undefined {
  const [first] = told;
  if (!first) return undefined;
  const steps = told.flatMap(({ worker, document }) =>
    document.shown.map((step) => ({
      ...step,
      stays: step.stays.map((stay) => withSharedKey(worker, stay)),
    })),
  );
  const shown = [...Map.groupBy(steps, ({ number }) => number).values()]
    .map(mergedStep)
    .sort((one, other) => one.number - other.number);
  return { ...first.document, ...mergedTask(told.map(({ document: { shown: _, ...task } }) => task)), shown };
}

function mergedStep(steps: readonly TaskStep[]): TaskStep {
  const replayed_at_ms = latestOf(steps.map((step) => step.replayed_at_ms));
  const stays: RunStay[] = steps.flatMap((step) => step.stays);
  return {
    number: steps[0]?.number ?? 0,
    stays: stays.sort((one, other) => startOf(one) - startOf(other)),
    replays: sumOf(steps, ({ replays }) => replays),
    ...(replayed_at_ms !== undefined && { replayed_at_ms }),
  };
}

const startOf = ({ course, created_at_ms }: RunStay): number => course[0]?.[1] ?? created_at_ms;

const TASK_STATES = ['recovering', 'answering'] as const;

/** Merges the workers' views of one task. */
export function mergedTask(tasks: readonly TaskSummary[]): TaskSummary {
  const [last] = tasks.toSorted((one, other) => other.step_at_ms - one.step_at_ms);
  if (!last) throw new Error('there is nothing to merge');
  const active = TASK_STATES.find((state) => tasks.some((task) => task.state === state));
  const { idle_since_ms: _, ...lasting } = last;
  const numbers = StepNumbers.union(tasks.map(({ step_numbers }) => step_numbers));
  const idle_since_ms = active ? undefined : latestOf(tasks.map((task) => task.idle_since_ms));
  return {
    ...lasting,
    state: active ?? last.state,
    began_at_ms: Math.min(...tasks.map(({ began_at_ms }) => began_at_ms)),
    ...(idle_since_ms !== undefined && { idle_since_ms }),
    steps: numbers.size,
    step_numbers: numbers.text,
    recoveries: sumOf(tasks, ({ recoveries }) => recoveries),
    tokens_paid: sumOf(tasks, ({ tokens_paid }) => tokens_paid),
    tokens_saved: sumOf(tasks, ({ tokens_saved }) => tokens_saved),
  };
}

function mergedCounts(counts: readonly RunCounts[]): RunCounts {
  const ended: Record<string, number> = {};
  for (const { ended: each } of counts)
    for (const [outcome, count] of Object.entries(each)) ended[outcome] = (ended[outcome] ?? 0) + count;
  return {
    live: sumOf(counts, ({ live }) => live),
    recovering: sumOf(counts, ({ recovering }) => recovering),
    ended,
    unwatched: sumOf(counts, ({ unwatched }) => unwatched),
  };
}

const mergedInterruptions = (counts: readonly InterruptionCount[]): InterruptionCount[] =>
  [...Map.groupBy(counts, ({ upstream, cause }) => `${cause} ${upstream}`).values()].flatMap((same) =>
    same.slice(0, 1).map((one) => ({ ...one, count: sumOf(same, ({ count }) => count) })),
  );

function mergedGaps(gaps: readonly RecoveryGaps[]): RecoveryGaps {
  return {
    count: sumOf(gaps, ({ count }) => count),
    sum_ms: sumOf(gaps, ({ sum_ms }) => sum_ms),
    max_ms: Math.max(...gaps.map(({ max_ms }) => max_ms)),
    buckets: (gaps[0]?.buckets ?? []).map(({ le_ms }, index) => ({
      le_ms,
      count: sumOf(gaps, ({ buckets }) => buckets[index]?.count ?? 0),
    })),
  };
}

function mergedHistory(histories: readonly RunHistory[]): RunHistory {
  const sums = (list: 'begun' | 'interrupted' | 'rescued' | 'failed') =>
    (histories[0]?.[list] ?? []).map((_, index) => sumOf(histories, (history) => history[list][index] ?? 0));
  return {
    slot_ms: histories[0]?.slot_ms ?? 0,
    begun: sums('begun'),
    interrupted: sums('interrupted'),
    rescued: sums('rescued'),
    failed: sums('failed'),
  };
}

const STORE_STATES = ['failing', 'unknown', 'ok'] as const;

/** The state reported by the worker for which the store works worst. */
function mergedStore(stores: readonly StoreState[]): StoreState {
  const rank = ({ state }: StoreState) => STORE_STATES.indexOf(state);
  const [worst] = stores.toSorted((one, other) => rank(one) - rank(other));
  if (!worst) throw new Error('there is nothing to merge');
  return { ...worst, failed_appends: sumOf(stores, ({ failed_appends }) => failed_appends) };
}

const BREAKER_STATES = ['open', 'half_open', 'closed'] as const;

const mergedTargets = (targets: readonly TargetStatus[]): TargetStatus[] =>
  [...Map.groupBy(targets, ({ upstream, model }) => JSON.stringify([upstream, model])).values()].map(
    mergedTarget,
  );

/** Percentiles and breaker state come from the worker for which the target does worst. */
function mergedTarget(same: readonly TargetStatus[]): TargetStatus {
  const [first] = same;
  if (!first) throw new Error('there is nothing to merge');
  const { first_token: _, last_failure: __, ...lasting } = first;
  const [slowest] = same
    .flatMap(({ first_token }) => (first_token ? [first_token] : []))
    .sort((one, other) => other.p95_ms - one.p95_ms);
  const [newest] = same
    .flatMap(({ last_failure }) => (last_failure ? [last_failure] : []))
    .sort((one, other) => other.at_ms - one.at_ms);
  return {
    ...lasting,
    state: BREAKER_STATES.find((state) => same.some((target) => target.state === state)) ?? first.state,
    attempts: sumOf(same, ({ attempts }) => attempts),
    errors: sumOf(same, ({ errors }) => errors),
    ...(slowest && { first_token: slowest }),
    ...(newest && { last_failure: newest }),
  };
}

/** Each worker's entry about itself takes precedence. */
function mergedFleet(fleets: readonly (readonly FleetMember[])[]): readonly FleetMember[] {
  const own = fleets.flat().filter(({ self }) => self);
  const names = new Set(own.map(({ name }) => name));
  const others = (fleets[0] ?? []).filter(({ name }) => !names.has(name));
  return [...own, ...others].sort((one, other) => (one.name < other.name ? -1 : 1));
}

const latestOf = (times: readonly (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
};

const sumOf = <Item>(items: readonly Item[], count: (item: Item) => number): number =>
  items.reduce((sum, item) => sum + count(item), 0);
