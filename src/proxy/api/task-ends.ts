import { isRunId, type Owner, type RunId } from '../../checkpoint/store.ts';
import { ApiError, apiError } from '../../lib/errors.ts';
import { answerOf } from '../resume/stored-runs.ts';
import { taskSummaryNote } from '../run/compression/task-summary.ts';
import type { NumberedName } from '../tasks/numbered-names.ts';
import { runOfStep, stepNote } from '../tasks/step-runs.ts';
import { isEnded, type OwnedTask } from '../tasks/task-states.ts';
import type { ApiContext } from './api-context.ts';
import { cancelRun, purgeRun } from './run-ends.ts';
import { eachNumbered, eachStep, type FoundTask, foundIn } from './task-documents.ts';

/** Limits the chain of runs of one step: each may continue an interrupted one. */
const RUNS_OF_STEP_MAX = 64;

type Removal = 'cancel' | 'purge';

/** Cancels the task's running answers. Throws `store_unavailable`. */
export async function cancelSteps(task: FoundTask, context: ApiContext): Promise<void> {
  const range = [1, task.record.steps] as const;
  await eachStep(task, range, context, (step) => removeRuns(task.owner, step, 'cancel', context));
}

/**
 * Deletes the task: its steps with their runs, its summary, and the results of its tool calls. The task counts as
 * cancelled until this is complete; an interrupted purge can be repeated. Throws `task_not_found` and
 * `store_unavailable`.
 */
export async function purgeTask(task: OwnedTask, context: ApiContext): Promise<void> {
  const { tasks } = context;
  const { states, terms, usage } = context.taskRules;
  const state = await answerOf(states.of(task), context);
  const goesOn = !isEnded(state);
  const found = await foundIn(state, task, context);
  // An earlier purge may have stopped just before its end.
  if (!found && goesOn) throw apiError('task_not_found');
  if (goesOn) await answerOf(states.end(task, 'cancelled'), context);
  if (found) {
    await purgeSteps(found, context);
    await forgetCalls(found, context);
    await answerOf(usage.forget(found), context);
    await answerOf(context.divergences.forget(found), context);
    await answerOf(context.store.notes.consume(task.owner, taskSummaryNote(task.task)), context);
    await answerOf(tasks.forget(task, found.record), context);
  }
  await answerOf(terms.forget(task), context);
  await answerOf(states.forget(task), context);
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

/** Includes each session's record of its steps. */
async function purgeSteps(task: FoundTask, context: ApiContext): Promise<void> {
  const { steps, store, tasks } = context;
  const { owner, record } = task;
  const sessions = await answerOf(tasks.sessions(task, 1, record.sessions ?? 0), context);
  await eachStep(task, [1, record.steps], context, async (step) => {
    await removeRuns(owner, step, 'purge', context);
    for (const { name } of sessions) await answerOf(steps.forgetSession(task, name, step), context);
    await answerOf(store.notes.consume(owner, stepNote(step.name)), context);
    await answerOf(tasks.forgetStep(task, step), context);
  });
  for (const session of sessions) await answerOf(tasks.forgetSession(task, session), context);
}

async function removeRuns(
  owner: Owner,
  step: NumberedName,
  removal: Removal,
  context: ApiContext,
): Promise<void> {
  let run = await answerOf(runOfStep(context.store, owner, step.name), context);
  for (let removed = 0; run !== undefined && removed < RUNS_OF_STEP_MAX; removed++)
    run = await removeRun(run, owner, removal, context);
}

/** Returns the run that this run continued, if any. */
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
    // It never began, or is no longer known.
    if (error instanceof ApiError && error.code === 'run_not_found') return undefined;
    throw error;
  }
}
