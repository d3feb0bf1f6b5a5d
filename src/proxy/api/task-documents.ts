import type { Owner } from '../../checkpoint/store.ts';
import { answerOf } from '../resume/stored-runs.ts';
import type { NumberedName } from '../tasks/numbered-names.ts';
import { storedStep } from '../tasks/step-runs.ts';
import type { TaskDivergence } from '../tasks/task-divergence.ts';
import { STEPS_MAX, TASKS_LISTED_MAX, type TaskEra, type TaskRecord } from '../tasks/task-records.ts';
import type { OwnedTask, TaskState } from '../tasks/task-states.ts';
import { tokensOf } from '../tasks/task-usage.ts';
import type { ApiContext } from './api-context.ts';
import { invalid, nameOf } from './request-fields.ts';
import { limitOf, READ_AT_ONCE, type RunSummary, runSummary, seconds } from './run-documents.ts';

/** Everything known about a task, except for its runs. */
export interface FoundTask extends TaskEra {
  readonly state: TaskState;
  readonly record: TaskRecord;
}

/** Undefined if the owner has no such task. Throws `store_unavailable`. */
export async function findTask(task: OwnedTask, context: ApiContext): Promise<FoundTask | undefined> {
  return foundIn(await answerOf(context.taskRules.states.of(task), context), task, context);
}

/** Like {@link findTask}, with a state that was already read. */
export async function foundIn(
  state: TaskState,
  task: OwnedTask,
  context: ApiContext,
): Promise<FoundTask | undefined> {
  const { era } = state;
  const record = await answerOf(context.tasks.find({ ...task, era }), context);
  return record && { ...task, era, state, record };
}

/** `pending`: no request has been answered yet. `failed`: the task is running, but its last step has no answer. */
export const TASK_STATUSES = ['pending', 'running', 'failed', 'paused', 'completed', 'cancelled'] as const;

type TaskStatus = (typeof TASK_STATUSES)[number];

interface TaskSummary {
  readonly status: TaskStatus;
  readonly parent: string | null;
  readonly [field: string]: unknown;
}

/** The document of a task for its owner. Throws `store_unavailable`. */
export async function taskDocument(found: FoundTask, context: ApiContext): Promise<TaskSummary> {
  const [summary, usage] = await Promise.all([
    taskSummary(found, context),
    answerOf(context.taskRules.usage.of(found), context),
  ]);
  const { prompt_tokens, completion_tokens } = usage;
  return { ...summary, usage: { prompt_tokens, completion_tokens, total_tokens: tokensOf(usage) } };
}

/** The document without usage, which would read all steps. Throws `store_unavailable`. */
async function taskSummary(found: FoundTask, context: ApiContext): Promise<TaskSummary> {
  const { since_ms, reason, kept_until_ms } = found.state;
  const { created_at_ms, parent, steps, sessions } = found.record;
  const [terms, divergence, [last]] = await Promise.all([
    answerOf(context.taskRules.terms.of(found), context),
    answerOf(context.divergences.of(found), context),
    steps === 0 ? [] : stepsOf(found, [steps, steps], context),
  ]);
  const { description, steps_total, deadline_at_ms, budget_tokens } = terms;
  return {
    id: found.task,
    object: 'holdfast.task',
    status: statusOf(found, last),
    status_since: since_ms === undefined ? null : seconds(since_ms),
    reason: reason ?? null,
    expires_at: kept_until_ms === undefined ? null : seconds(kept_until_ms),
    created_at: created_at_ms === undefined ? null : seconds(created_at_ms),
    parent: parent ?? null,
    description: description ?? null,
    deadline_at: deadline_at_ms === undefined ? null : seconds(deadline_at_ms),
    budget_tokens: budget_tokens ?? null,
    sessions: sessions ?? 0,
    steps,
    steps_total: steps_total ?? null,
    last_step: last ?? null,
    diverged: divergence ? divergenceDocument(divergence) : null,
  };
}

const divergenceDocument = ({ step, by_step, changed, at_ms }: TaskDivergence): object => ({
  step,
  by_step,
  changed,
  at: seconds(at_ms),
});

function statusOf({ state, record }: FoundTask, last: StepDocument | undefined): TaskStatus {
  if (state.status !== 'running') return state.status;
  if (record.steps === 0) return 'pending';
  return last?.run?.status === 'failed' ? 'failed' : 'running';
}

/** Filters and paging of a list of tasks. */
interface TaskQuery {
  readonly status?: TaskStatus;
  readonly parent?: string;
  readonly limit: number;
  /** The number of the last task examined for the previous page. */
  readonly after?: number;
}

/** `?status=…&parent=…&limit=…&after=…`. Throws `invalid_field`. */
export function taskQuery({ status, parent, limit, after }: Readonly<Record<string, unknown>>): TaskQuery {
  return {
    limit: limitOf(limit),
    ...(status !== undefined && { status: wantedStatus(status) }),
    ...(parent !== undefined && { parent: nameOf('parent', parent) }),
    ...(after !== undefined && { after: numberOf(after, Number.MAX_SAFE_INTEGER) }),
  };
}

function wantedStatus(value: unknown): TaskStatus {
  const status = TASK_STATUSES.find((known) => known === value);
  if (status === undefined) throw invalid('status', `one of ${TASK_STATUSES.join(', ')}`);
  return status;
}

/** Numbers examined per page, whether their tasks still exist or not. */
const LOOKED_INTO_MAX = 400;

/**
 * One page of the owner's tasks, newest first, with their current states. A page may hold fewer than `limit` tasks
 * although `next` is set. Throws `store_unavailable`.
 */
export async function taskList(owner: Owner, query: TaskQuery, context: ApiContext): Promise<object> {
  const { limit, after = Number.POSITIVE_INFINITY } = query;
  const last = await answerOf(context.tasks.lastTask(owner), context);
  const oldest = Math.max(1, last - TASKS_LISTED_MAX + 1);
  const data: TaskSummary[] = [];
  let next = Math.min(after - 1, last);
  const stop = Math.max(oldest, next - LOOKED_INTO_MAX + 1);
  while (next >= stop && data.length < limit) {
    const first = Math.max(stop, next - Math.min(READ_AT_ONCE, limit - data.length) + 1);
    const numbered = await answerOf(context.tasks.tasks(owner, first, next), context);
    const documents = await Promise.all(numbered.map((each) => listed(owner, each, context)));
    for (const document of documents.toReversed())
      if (document && isWanted(document, query)) data.push(document);
    next = first - 1;
  }
  const has_more = next >= oldest;
  return { object: 'list', data, has_more, next: has_more ? String(next + 1) : null };
}

const isWanted = (task: TaskSummary, { status, parent }: TaskQuery): boolean =>
  (status === undefined || task.status === status) && (parent === undefined || task.parent === parent);

/** Undefined if the task is no longer known, or was renumbered. */
async function listed(
  owner: Owner,
  { number, name }: NumberedName,
  context: ApiContext,
): Promise<TaskSummary | undefined> {
  const found = await findTask({ owner, task: name }, context);
  return found?.record.number === number ? taskSummary(found, context) : undefined;
}

/** Paging of a task's steps or calls. */
export interface NumberQuery {
  readonly limit: number;
  /** The last number examined for the previous page. */
  readonly after: number;
}

/** `?limit=…&after=…`. Throws `invalid_field`. */
export const numberQuery = (
  { limit, after = '0' }: Readonly<Record<string, unknown>>,
  numbers_max: number,
): NumberQuery => ({ limit: limitOf(limit), after: numberOf(after, numbers_max) });

export const stepQuery = (query: Readonly<Record<string, unknown>>): NumberQuery =>
  numberQuery(query, STEPS_MAX);

function numberOf(value: unknown, number_max: number): number {
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (number <= number_max) return number;
  throw invalid('after', 'the `next` of the page before');
}

/** One page of steps in order. Steps that are no longer known are left out, so a page may hold fewer than `limit`. */
export async function stepList(
  found: FoundTask,
  { limit, after }: NumberQuery,
  context: ApiContext,
): Promise<object> {
  const { steps } = found.record;
  const last = Math.min(after + limit, steps);
  return numberedPage(await stepsOf(found, [after + 1, last], context), last, steps);
}

/** A page of numbered entries. `looked_at`: the last number examined; `last`: the highest number. */
export function numberedPage(data: readonly object[], looked_at: number, last: number): object {
  const has_more = looked_at < last;
  return { object: 'list', data, has_more, next: has_more ? String(looked_at) : null };
}

interface StepDocument {
  readonly object: 'holdfast.step';
  readonly number: number;
  /** `null` if it no longer exists, or never began. */
  readonly run: RunSummary | null;
}

const stepsOf = (task: FoundTask, range: NumberRange, context: ApiContext) =>
  eachStep(task, range, context, (step) => stepDocument(task.owner, step, context));

/** See {@link eachNumbered}. Throws `store_unavailable`. */
export const eachStep = <Result>(
  task: FoundTask,
  range: NumberRange,
  context: ApiContext,
  work: (step: NumberedName) => Promise<Result>,
) => eachNumbered(range, (first, last) => answerOf(context.tasks.steps(task, first, last), context), work);

type NumberRange = readonly [first: number, last: number];

/** Applies `work` to the entries in a range of numbers that are still known, in order, a few at a time. */
export async function eachNumbered<Result>(
  [first, last]: NumberRange,
  read: (first: number, last: number) => Promise<readonly NumberedName[]>,
  work: (each: NumberedName) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (let start = first; start <= last; start += READ_AT_ONCE) {
    const some = await read(start, Math.min(start + READ_AT_ONCE - 1, last));
    results.push(...(await Promise.all(some.map(work))));
  }
  return results;
}

async function stepDocument(
  owner: Owner,
  { number, name }: NumberedName,
  context: ApiContext,
): Promise<StepDocument> {
  const found = await answerOf(storedStep(context.store, owner, name), context);
  return { object: 'holdfast.step', number, run: found ? runSummary(found.run, found.stored) : null };
}
