import { STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import { REPLICA_LOST } from '../../checkpoint/salvaged-run.ts';
import type { StoredRun } from '../../checkpoint/store.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import type { RunJournal } from './journal.ts';
import { lostCallKey } from './notices/lost-calls.ts';
import { withdrawThreadNote } from './notices/thread-notice.ts';

/** How long delivery waits for the store to answer and to return the run. */
const REGAINED_WITHIN_MS = 30_000;
const LOOK_AGAIN_MS = 50;

/**
 * Whether a run with a lost lease may still be delivered: replicas that missed this one's heartbeats took it over and
 * salvaged it or handed it over, but no client received anything from them. The run is then taken back, and the notices
 * for its thread are withdrawn. If the store can't return a run, it continues without a journal, because an ended run
 * can't be taken over again. Resolves with false once another replica has the run, or if the store does not answer in
 * time. Never rejects.
 */
export async function regained(
  run: Run,
  journal: RunJournal,
  context: RunContext,
  signal: AbortSignal,
): Promise<boolean> {
  const { configuration, store, time, log } = context;
  const { durability, lease_ms } = configuration.checkpoint;
  const until_ms = time.now() + REGAINED_WITHIN_MS;
  let held_ms: number | undefined;
  for (; !signal.aborted && time.now() < until_ms; await sleep(time, LOOK_AGAIN_MS, signal)) {
    const stored = await look(run, journal, context);
    if (stored === undefined) continue;
    if (!stored || !journal.isUntouched(stored) || isEnded(stored)) return false;
    if (stored.holder.state === 'alive') {
      // The holder may be about to salvage the run, or to hand back a takeover that came too late.
      held_ms ??= time.now();
      if (time.now() - held_ms >= lease_ms) return false;
      continue;
    }
    if (store.takeBack) {
      if (!(await journal.takeBack(stored))) continue;
      log.warn({ run: run.id }, 'taken back: other replicas took the run over but added nothing');
    } else {
      // `write_ahead` forbids showing events that aren't stored, and a run that hasn't ended may be taken over.
      if (durability === 'write_ahead' || !stored.end) return false;
      journal.begin(undefined, time.now());
      log.warn({ run: run.id }, 'another replica salvaged the run: it continues without checkpoints');
    }
    await withdrawNotices(run, context);
    return durability === 'write_ahead' ? journal.proven() : true;
  }
  return false;
}

/** The stored run: null if there is none, undefined if the store does not answer. */
async function look(
  { id, owner }: Run,
  { stored_seq }: RunJournal,
  { store, time }: RunContext,
): Promise<StoredRun | null | undefined> {
  const asked = store.read(id, owner, stored_seq).catch(() => undefined);
  return inTime(asked, time, STORE_WAIT_MAX_MS);
}

/** Ended by anything other than a salvage. */
const isEnded = ({ end }: StoredRun): boolean => end !== undefined && end.cause !== REPLICA_LOST;

async function withdrawNotices(run: Run, { configuration, store, time, log }: RunContext): Promise<void> {
  const { id, owner, thread } = run;
  const ttl_ms = configuration.checkpoint.ttl_s * 1000;
  const withdraw = async () => {
    await store.notes.consume(owner, lostCallKey(id));
    if (thread !== undefined) await withdrawThreadNote(store.notes, owner, thread, id, ttl_ms);
  };
  const withdrawn = withdraw().catch((error: unknown) => {
    log.warn({ run: id, err: error }, 'notice not taken back: the store refuses it');
  });
  await inTime(withdrawn, time, STORE_WAIT_MAX_MS);
}
