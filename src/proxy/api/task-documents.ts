import type { Owner } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import { knownRunIn } from '../resume/run-lookup.ts';
import { answerOf } from '../resume/stored-runs.ts';
import { type NumberedStep, STEPS_MAX, type TaskRecord } from '../resume/task-records.ts';
import type { ApiContext } from './api-context.ts';
import { limitOf, READ_AT_ONCE, runSummary, seconds } from './run-documents.ts';

export interface OwnedTask {
  readonly owner: Owner;
  readonly task: string;
}

/** A task as its owner is shown it. */
export async function taskDocument(
  { owner, task }: OwnedTask,
  { created_at_ms, steps }: TaskRecord,
  context: ApiContext,
): Promise<object> {
  const [last] = steps === 0 ? [] : await stepsOf({ owner, task }, steps, steps, context);
  return {
    id: task,
    object: 'holdfast.task',
    created_at: created_at_ms === undefined ? null : seconds(created_at_ms),
    steps,
    last_step: last ?? null,
  };
}

/** Which of the steps of a task are asked for. */
interface StepQuery {
  readonly limit: number;
  /** The number of the last step that the page before has looked at. */
  readonly after: number;
}

/** `?limit=…&after=…`. Throws `invalid_field`. */
export function stepQuery({ limit, after = '0' }: Readonly<Record<string, unknown>>): StepQuery {
  const number = typeof after === 'string' && /^\d{1,5}$/.test(after) ? Number(after) : Number.NaN;
  if (!(number <= STEPS_MAX))
    throw apiError('invalid_field', { param: 'after', expected: 'the `next` of the page before' });
  return { limit: limitOf(limit), after: number };
}

/** One page of the steps, in their order. What is known no longer is left out, so a page may be shorter than `limit`. */
export async function stepList(
  task: OwnedTask,
  steps: number,
  { limit, after }: StepQuery,
  context: ApiContext,
): Promise<object> {
  const last = Math.min(after + limit, steps);
  const data = await stepsOf(task, after + 1, last, context);
  const has_more = last < steps;
  return { object: 'list', data, has_more, next: has_more ? String(last) : null };
}

async function stepsOf(
  { owner, task }: OwnedTask,
  first: number,
  last: number,
  context: ApiContext,
): Promise<readonly object[]> {
  const documents: object[] = [];
  for (let start = first; start <= last; start += READ_AT_ONCE) {
    const end = Math.min(start + READ_AT_ONCE - 1, last);
    const steps = await answerOf(context.tasks.steps(owner, task, start, end), context);
    documents.push(...(await Promise.all(steps.map((step) => stepDocument(owner, step, context)))));
  }
  return documents;
}

/** `run`: `null` when it is gone, or was never begun. */
async function stepDocument(
  owner: Owner,
  { number, note }: NumberedStep,
  context: ApiContext,
): Promise<object> {
  const noted = await answerOf(context.store.notes.get(owner, note), context);
  const known = noted === undefined ? undefined : knownRunIn(noted);
  const stored = known && (await answerOf(context.store.read(known.run, owner, 0), context));
  return { object: 'holdfast.step', number, run: known && stored ? runSummary(known.run, stored) : null };
}
