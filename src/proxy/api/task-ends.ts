import type { NoteKey } from '../../checkpoint/notes.ts';
import { ApiError } from '../../lib/errors.ts';
import { knownRunIn } from '../resume/run-lookup.ts';
import { answerOf } from '../resume/stored-runs.ts';
import type { NumberedName } from '../tasks/numbered-names.ts';
import type { ApiContext } from './api-context.ts';
import { READ_AT_ONCE } from './run-documents.ts';
import { cancelRun, purgeRun } from './run-ends.ts';
import type { FoundTask } from './task-documents.ts';

type Removal = 'cancel' | 'purge';

/** Cancels the answers of the task that are under way. Throws `store_unavailable`. */
export async function cancelSteps(task: FoundTask, context: ApiContext): Promise<void> {
  await removeSteps(task, 'cancel', context);
}

/**
 * Forgets the task, its steps with their runs, and the results of its tool calls. It counts as cancelled meanwhile, and where this is
 * interrupted: it may be purged again. Throws `store_unavailable`.
 */
export async function purgeTask(task: FoundTask, context: ApiContext): Promise<void> {
  const { tasks, taskStates, ledger } = context;
  const { status } = task.state;
  if (status === 'running' || status === 'paused') await answerOf(taskStates.end(task, 'cancelled'), context);
  await removeSteps(task, 'purge', context);
  const calls = await answerOf(tasks.lastCall(task), context);
  for (let first = 1; first <= calls; first += READ_AT_ONCE) {
    const some = await answerOf(tasks.calls(task, first, first + READ_AT_ONCE - 1), context);
    await Promise.all(
      some.map(async (call) => {
        await answerOf(ledger.forget({ ...task, key: call.name }), context);
        await answerOf(tasks.forgetCall(task, call), context);
      }),
    );
  }
  await answerOf(tasks.forget(task, task.record), context);
  await answerOf(taskStates.forget(task), context);
  context.log.info({ task: task.task }, 'task purged');
}

async function removeSteps(task: FoundTask, removal: Removal, context: ApiContext): Promise<void> {
  const { steps } = task.record;
  for (let first = 1; first <= steps; first += READ_AT_ONCE) {
    const last = Math.min(first + READ_AT_ONCE - 1, steps);
    const some = await answerOf(context.tasks.steps(task, first, last), context);
    await Promise.all(some.map((step) => removeStep(task, step, removal, context)));
  }
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
  if (known) {
    try {
      await cancelRun(known.run, owner, context);
      if (removal === 'purge') await purgeRun(known.run, owner, context);
    } catch (error) {
      // It was never begun, or is known no longer.
      if (!(error instanceof ApiError && error.code === 'run_not_found')) throw error;
    }
  }
  if (removal === 'cancel') return;
  await answerOf(notes.consume(owner, note), context);
  await answerOf(context.tasks.forgetStep(task, step), context);
}
