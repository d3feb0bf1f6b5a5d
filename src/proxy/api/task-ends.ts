import type { NoteKey } from '../../checkpoint/notes.ts';
import { isRunId, type Owner, type RunId } from '../../checkpoint/store.ts';
import { ApiError, apiError } from '../../lib/errors.ts';
import { knownRunIn } from '../resume/run-lookup.ts';
import { answerOf } from '../resume/stored-runs.ts';
import { taskSummaryNote } from '../run/compression/task-summary.ts';
import type { NumberedName } from '../tasks/numbered-names.ts';
import type { OwnedTask } from '../tasks/task-states.ts';
import type { ApiContext } from './api-context.ts';
import { cancelRun, purgeRun } from './run-ends.ts';
import { eachNumbered, type FoundTask, foundIn } from './task-documents.ts';

/** A run that was cut may have been continued by another one, and that by the next. */
const RUNS_OF_STEP_MAX = 64;

type Removal = 'cancel' | 'purge';

/** Cancels the answers of the task that are under way. Throws `store_unavailable`. */
export async function cancelSteps(task: FoundTask, context: ApiContext): Promise<void> {
  await removeSteps(task, 'cancel', context);
}

/**
 * Forgets the task, its steps with their runs, its summary, and the results of its tool calls. It counts as cancelled meanwhile, and where this is
 * interrupted: it may be purged again. Throws `task_not_found` and `store_unavailable`.
 */
export async function purgeTask(task: OwnedTask, context: ApiContext): Promise<void> {
  const { tasks, taskStates } = context;
  const state = await answerOf(taskStates.of(task), context);
  const goesOn = state.status === 'running' || state.status === 'paused';
  const found = await foundIn(state, task, context);
  // An earlier attempt may have come to everything but its end.
  if (!found && goesOn) throw apiError('task_not_found');
  if (goesOn) await answerOf(taskStates.end(task, 'cancelled'), context);
  if (found) {
    await removeSteps(found, 'purge', context);
    await forgetCalls(found, context);
    await answerOf(context.store.notes.consume(task.owner, taskSummaryNote(task.task)), context);
    await answerOf(tasks.forget(task, found.record), context);
  }
  await answerOf(taskStates.forget(task), context);
  context.log.info({ task: task.task }, 'task purged');
}

async function forgetCalls(task: FoundTask, context: ApiContext): Promise<void> {
  const { tasks, ledger } = context;
  await eachNumbered(
    [1, task.record.calls ?? 0],
    (first, last) => answerOf(tasks.calls(task, first, last), context),
    async (call) => {
      await answerOf(ledger.forget({ ...task, key: call.name }), context);
      await answerOf(tasks.forgetCall(task, call), context);
    },
  );
}

async function removeSteps(task: FoundTask, removal: Removal, context: ApiContext): Promise<void> {
  await eachNumbered(
    [1, task.record.steps],
    (first, last) => answerOf(context.tasks.steps(task, first, last), context),
    (step) => removeStep(task, step, removal, context),
  );
}

async function removeStep(
  task: FoundTask,
  step: NumberedName,
  removal: Removal,
  context: ApiContext,
): Promise<void> {
  const { notes } = context.store;
  const { owner } = task;
  const note: NoteKey = { kind: 'step', name: step.name };
  const noted = await answerOf(notes.get(owner, note), context);
  const known = noted === undefined ? undefined : knownRunIn(noted);
  let run = known?.run;
  for (let removed = 0; run !== undefined && removed < RUNS_OF_STEP_MAX; removed++)
    run = await removeRun(run, owner, removal, context);
  if (removal === 'cancel') return;
  await answerOf(notes.consume(owner, note), context);
  await answerOf(context.tasks.forgetStep(task, step), context);
}

/** Returns the run that it continues, if it does. */
async function removeRun(
  run: RunId,
  owner: Owner,
  removal: Removal,
  context: ApiContext,
): Promise<RunId | undefined> {
  try {
    const { records } = await cancelRun(run, owner, context);
    if (removal === 'purge') await purgeRun(run, owner, context);
    const { continues = '' } = records[0]?.header ?? {};
    return isRunId(continues) ? continues : undefined;
  } catch (error) {
    // It was never begun, or is known no longer.
    if (error instanceof ApiError && error.code === 'run_not_found') return undefined;
    throw error;
  }
}
