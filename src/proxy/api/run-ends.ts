import type { Owner, RunId, StoredRun } from '../../checkpoint/store.ts';
import { inTime } from '../../lib/time.ts';
import { answerOf, cancelStored, readRun } from '../resume/stored-runs.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { forgetHeldCalls } from '../run/notices/held-calls.ts';
import { lostCallKey } from '../run/notices/lost-calls.ts';
import { withdrawThreadNote } from '../run/notices/thread-notice.ts';
import type { ApiContext } from './api-context.ts';

/**
 * How long to wait for a run on this replica to end: before a cancellation fences it, and before a run whose client has
 * the whole answer is reported as running.
 */
export const END_MS_MAX = 2000;

/** Cancels a run of this owner on any replica. Throws like `readRun`. */
export async function cancelRun(run: RunId, owner: Owner, context: ApiContext): Promise<StoredRun> {
  const { registry, time } = context;
  const active = registry.holder(run);
  if (active?.owner === owner) {
    active.cancel();
    await inTime(active.ended, time, END_MS_MAX);
  }
  return cancelStored(run, owner, context);
}

/**
 * Deletes a run that has ended, and the notes with its content: the partial answer and the names of calls. Other notes
 * only name the run, and a successor is a run of its own. Throws like `readRun`.
 */
export async function purgeRun(run: RunId, owner: Owner, context: RunContext): Promise<void> {
  const { store, configuration, log } = context;
  const { records } = await readRun(run, owner, context);
  const thread = records[0]?.header?.thread;
  const ttl_ms = configuration.checkpoint.ttl_s * 1000;
  const notes = [
    store.notes.consume(owner, lostCallKey(run)),
    forgetHeldCalls(store.notes, owner, run),
    ...(thread === undefined ? [] : [withdrawThreadNote(store.notes, owner, thread, run, ttl_ms)]),
  ];
  await answerOf(Promise.all(notes), context);
  await answerOf(store.purge(run, owner), context);
  log.info({ run }, 'run purged');
}
