import {
  AcquireRefusedError,
  type Owner,
  type RunId,
  StaleLeaseError,
  type StoredRun,
} from '../../checkpoint/store.ts';
import { ApiError, apiError } from '../../lib/errors.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { ActiveRun } from '../run/run-registry.ts';
import { keyNote, knownRunIn } from './run-lookup.ts';

/** A store that has not answered for this long counts as unreachable. */
const ANSWER_MAX_MS = 5000;
/** How often a store is asked whether a run has come further. */
const POLL_MS = 50;
/** Another replica takes the run over in every round: more of them than this means that something is wrong. */
const CANCEL_ROUNDS_MAX = 5;

/**
 * The whole run. Throws `run_not_found` for one that is unknown, expired, or another owner's, and
 * `store_unavailable` when that cannot be found out.
 */
export async function readRun(run: RunId, owner: Owner, context: RunContext): Promise<StoredRun> {
  const stored = await answerOf(context.store.read(run, owner, 0), context);
  if (!stored) throw apiError('run_not_found');
  return stored;
}

/** The run that the last request with this key led to, whether it has begun or not. Throws as {@link readRun} does. */
export async function runOfKey(key: string, owner: Owner, context: RunContext): Promise<RunId> {
  const note = await answerOf(context.store.notes.get(owner, keyNote(key)), context);
  const known = note === undefined ? undefined : knownRunIn(note);
  if (!known) throw apiError('run_not_found');
  return known.run;
}

/**
 * Reads the run until its checkpoint has come to event `seq`, for as long as its replica lives, but no longer than a
 * lease lasts: clients are ahead of the checkpoint for a moment, in which they are not to be turned away.
 */
export async function readUpTo(
  seq: number,
  run: RunId,
  { owner, signal }: ActiveRun,
  context: RunContext,
): Promise<StoredRun> {
  const until_ms = context.time.now() + context.configuration.checkpoint.lease_ms;
  for (;;) {
    const stored = await readRun(run, owner, context);
    const mayCatchUp = stored.status === 'running' && stored.holder.state === 'alive';
    if (stored.seq >= seq || !mayCatchUp || context.time.now() >= until_ms || signal.aborted) return stored;
    await sleep(context.time, POLL_MS, signal);
  }
}

/**
 * Makes a run known that its store has never heard of, because it was away for as long as the run had a replica: an orphan
 * without a record, which can be taken over like any other. One that is known, or another owner's, stays as it is.
 */
export async function makeKnown(run: RunId, owner: Owner, context: RunContext): Promise<void> {
  const { store } = context;
  const begun = store.acquire(run, owner).then((lease) => store.release(lease));
  await answerOf(begun.catch(ignoreLostRace), context);
}

/** Ends the run as cancelled, whichever replica delivers it: a live holder elsewhere finds itself fenced. */
export async function cancelStored(run: RunId, owner: Owner, context: RunContext): Promise<StoredRun> {
  const { store, time } = context;
  for (let round = 0; round < CANCEL_ROUNDS_MAX; round++) {
    const stored = await readRun(run, owner, context);
    if (stored.status !== 'running') return stored;
    await answerOf(
      store
        .acquire(run, owner, stored.epoch)
        .then((lease) => store.finish(lease, { status: 'cancelled', at_ms: time.wall() }))
        .catch(ignoreLostRace),
      context,
    );
  }
  throw apiError('store_unavailable');
}

/** The next round sees what the other one did. */
function ignoreLostRace(error: unknown): void {
  const isLost = error instanceof AcquireRefusedError || error instanceof StaleLeaseError;
  if (!isLost) throw error;
}

/** What the store says, within its time; `store_unavailable` when it does not. */
export async function answerOf<Answer>(answer: Promise<Answer>, { time, log }: RunContext): Promise<Answer> {
  try {
    // In a box: what the store says may be nothing, too.
    const known = await inTime(
      answer.then((value) => ({ value })),
      time,
      ANSWER_MAX_MS,
    );
    if (!known) throw new Error(`the store has not answered for ${ANSWER_MAX_MS} ms`);
    return known.value;
  } catch (error) {
    // It is what the answer means.
    if (error instanceof ApiError) throw error;
    log.warn({ err: error }, 'the store cannot be read');
    throw apiError('store_unavailable');
  }
}
