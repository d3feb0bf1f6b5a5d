import { STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import { REPLICA_LOST } from '../../checkpoint/salvaged-run.ts';
import type { StoredRun } from '../../checkpoint/store.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import type { RunJournal } from './journal.ts';
import { lostCallKey } from './notices/lost-calls.ts';
import { withdrawThreadNote } from './notices/thread-notice.ts';

/** How long a run that was taken over, and of which no more is stored since, may be about to be finalised. */
const FINALISED_WITHIN_MS = 1000;
const LOOK_AGAIN_MS = 50;

/**
 * Whether a run whose lease is lost may be delivered to its end all the same, without a journal: replicas that could not
 * hear of this one have finalised it, and no client has got anything of it from them. Nothing can be taken over any more
 * then, so there is nothing to contradict. What they have noted of it for its thread is taken back. False where the store
 * does not say in time, or `signal` aborts. Never rejects.
 */
export async function salvagedMeanwhile(
  run: Run,
  journal: Pick<RunJournal, 'seq' | 'stored_seq'>,
  context: RunContext,
  signal: AbortSignal,
): Promise<boolean> {
  const { configuration, time, log } = context;
  // There, no event may be shown that is not stored.
  if (configuration.checkpoint.durability === 'write_ahead') return false;
  const stored = await taken(run, journal.stored_seq, context, signal);
  if (!stored || !isUntouched(stored, journal)) return false;
  const withdrawn = withdrawNotices(run, context).catch((error: unknown) => {
    log.warn({ run: run.id, err: error }, 'notice not taken back: the store refuses it');
  });
  await inTime(withdrawn, time, STORE_WAIT_MAX_MS);
  return true;
}

/** The run as others have it: they take it over first, and finalise it then. */
async function taken(
  { id, owner }: Run,
  stored_seq: number,
  { store, time }: RunContext,
  signal: AbortSignal,
): Promise<StoredRun | undefined> {
  const until_ms = time.now() + FINALISED_WITHIN_MS;
  for (;;) {
    const asked = store.read(id, owner, stored_seq).catch(() => null);
    const stored = await inTime(asked, time, STORE_WAIT_MAX_MS);
    if (!stored) return undefined;
    const mayBeFinalised = stored.status === 'running' && stored.takeovers.at(-1)?.seq === stored.seq;
    if (!mayBeFinalised || signal.aborted || time.now() >= until_ms) return stored;
    await sleep(time, LOOK_AGAIN_MS, signal);
  }
}

/** It was finalised, and has no event that was not delivered here. */
function isUntouched(
  { end, seq, takeovers }: StoredRun,
  journal: Pick<RunJournal, 'seq' | 'stored_seq'>,
): boolean {
  const isSalvaged = end?.cause === REPLICA_LOST && takeovers.at(-1)?.seq === seq;
  return isSalvaged && seq >= journal.stored_seq && seq <= journal.seq;
}

async function withdrawNotices(
  { id, owner, thread }: Run,
  { configuration, store: { notes } }: RunContext,
): Promise<void> {
  const ttl_ms = configuration.checkpoint.ttl_s * 1000;
  await notes.consume(owner, lostCallKey(id));
  if (thread !== undefined) await withdrawThreadNote(notes, owner, thread, id, ttl_ms);
}
