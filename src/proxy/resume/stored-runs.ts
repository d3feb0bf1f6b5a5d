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

/** The store counts as unreachable after this long without an answer. */
const ANSWER_MAX_MS = 5000;
/** Interval at which a run's progress is polled. */
const POLL_MS = 50;
/** In each round another replica must have taken the run over; more rounds than this indicate a defect. */
const CANCEL_ROUNDS_MAX = 5;

/**
 * The whole run. Throws `run_not_found` if it is unknown, expired or another owner's, and `store_unavailable` if the
 * store does not answer.
 */
export async function readRun(run: RunId, owner: Owner, context: RunContext): Promise<StoredRun> {
  const stored = await answerOf(context.store.read(run, owner, 0), context);
  if (!stored) throw apiError('run_not_found');
  return stored;
}

/** The run of the last request with this key, begun or not. Throws like {@link readRun}. */
export async function runOfKey(key: string, owner: Owner, context: RunContext): Promise<RunId> {
  const note = await answerOf(context.store.notes.get(owner, keyNote(key)), context);
  const known = note === undefined ? undefined : knownRunIn(note);
  if (!known) throw apiError('run_not_found');
  return known.run;
}

/**
 * Reads the run until its checkpoint reaches event `seq`, while its replica lives, but no longer than a lease. Clients
 * are briefly ahead of the checkpoint, and must not be refused for that.
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
 * Registers a run that the store has never seen because it was unavailable while the run had a replica. The result is
 * an orphan without records, which can be taken over like any other. Known runs and those of other owners stay
 * unchanged.
 */
export async function makeKnown(run: RunId, owner: Owner, context: RunContext): Promise<void> {
  const { store } = context;
  const begun = store.acquire(run, owner).then((lease) => store.release(lease));
  await answerOf(begun.catch(ignoreLostRace), context);
}

/** Ends the run as cancelled, even if another replica delivers it: that replica is fenced. */
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

/** The next round sees the result of the other operation. */
function ignoreLostRace(error: unknown): void {
  const isLost = error instanceof AcquireRefusedError || error instanceof StaleLeaseError;
  if (!isLost) throw error;
}

/** Awaits the store's answer. Throws `store_unavailable` if it fails or takes too long. */
export async function answerOf<Answer>(answer: Promise<Answer>, { time, log }: RunContext): Promise<Answer> {
  try {
    // Wrapped, because the store's answer may be undefined.
    const known = await inTime(
      answer.then((value) => ({ value })),
      time,
      ANSWER_MAX_MS,
    );
    if (!known) throw new Error(`the store has not answered for ${ANSWER_MAX_MS} ms`);
    return known.value;
  } catch (error) {
    // The answer itself may be an ApiError.
    if (error instanceof ApiError) throw error;
    log.warn({ err: error }, 'the store cannot be read');
    throw apiError('store_unavailable');
  }
}
