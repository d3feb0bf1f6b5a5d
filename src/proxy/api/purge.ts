import type { Owner, RunId } from '../../checkpoint/store.ts';
import { answerOf, readRun } from '../resume/stored-runs.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { forgetHeldCalls } from '../run/notices/held-calls.ts';
import { lostCallKey } from '../run/notices/lost-calls.ts';
import { withdrawThreadNote } from '../run/notices/thread-notice.ts';

/**
 * Forgets a run that has ended, and what is noted of what it said: the end of a partial answer, and the names of calls.
 * Other notes name a run, and say nothing of it; a run that goes on with this one is a run of its own.
 * Throws `store_unavailable`.
 */
export async function purgeStored(run: RunId, owner: Owner, context: RunContext): Promise<void> {
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
