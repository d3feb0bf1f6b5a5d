import { hash } from 'node:crypto';
import { STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import { newRunId } from '../../checkpoint/owner.ts';
import type { Owner, RunId, StoredRun } from '../../checkpoint/store.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { releaseLease } from '../run/context/with-lease.ts';
import { noteHeldCalls, readHeldCalls } from '../run/notices/held-calls.ts';
import { withdrawThreadNote } from '../run/notices/thread-notice.ts';
import { forkOf, reachable } from './reachable.ts';
import type { Position } from './reader.ts';
import { knownRunIn, successorNote } from './run-lookup.ts';
import { isLeftOver } from './stored-ending.ts';
import { answerOf } from './stored-runs.ts';

const BEGIN_MAX_MS = 1000;
const BEGIN_POLL_MS = 20;
const NEVER = new AbortController().signal;

interface Succession {
  readonly run: RunId;
  readonly owner: Owner;
  /**
   * The part of the run that the successor begins with: the whole leftover (see `isLeftOver`), or the events that it
   * shares with a client.
   */
  readonly stored: StoredRun;
  /** Set for a fork (see `forkOf`): the position of the client that gets its own answer. */
  readonly fork?: Pick<Position, 'cursor' | 'tail'>;
  /** The digest of the request that the successor answers. */
  readonly digest: string;
  /** The request, if the successor must store it. */
  readonly body?: string;
}

/**
 * The part of a run that becomes the beginning of another one for this client, if it needs one: the leftover of a run
 * that ended early, or the common part if the client can't be joined to the run.
 */
export function successionOf(
  stored: StoredRun,
  position: Position,
): Pick<Succession, 'stored' | 'fork'> | undefined {
  const { end: _end, ...left } = stored;
  if (isLeftOver(stored) && reachable({ ...left, status: 'running' }, position)) return { stored };
  const common = reachable(stored, position) ? undefined : forkOf(stored, position);
  return common && { stored: common, fork: position };
}

/**
 * The run that continues a leftover, or a client's version of a run that was continued differently. Existing runs stay
 * unchanged: the delivered part becomes the beginning of a new run, an orphan that can be taken over like any other.
 * Only one caller begins it; callers with the same answer share a fork. Throws `store_unavailable`.
 */
export async function successorOf(left: Succession, context: RunContext): Promise<RunId> {
  const { run, owner, digest } = left;
  const { store, configuration } = context;
  const fresh = newRunId();
  const note = noteOf(left);
  const claim = JSON.stringify({ run: fresh, digest });
  const ttl_ms = configuration.checkpoint.ttl_s * 1000;
  const kept = await answerOf(store.notes.claim(owner, note, claim, ttl_ms), context);
  if (kept !== claim) {
    const other = knownRunIn(kept)?.run;
    if (other && (await isBegun(other, owner, context))) return other;
    // Its replica was lost after the claim.
    await answerOf(store.notes.put(owner, note, claim, ttl_ms), context);
  }
  await begin(fresh, left, context);
  context.log.info(
    { run: fresh, continues: run, from: left.stored.seq },
    left.fork
      ? 'a new run continues the answer of a client that another replica has continued differently'
      : 'a new run continues what is left of another',
  );
  return fresh;
}

function noteOf({ run, fork }: Succession): NoteKey {
  if (!fork) return successorNote(run);
  const answer = hash('sha256', JSON.stringify([fork.cursor, fork.tail]), 'base64url');
  return { kind: 'successor', name: `${run} ${answer}` };
}

/** Waits briefly, because the claiming replica begins the successor at once. */
async function isBegun(run: RunId, owner: Owner, context: RunContext): Promise<boolean> {
  const { store, time } = context;
  const until_ms = time.now() + BEGIN_MAX_MS;
  while (!(await answerOf(store.read(run, owner, 0), context))?.records.length) {
    if (time.now() >= until_ms) return false;
    await sleep(time, BEGIN_POLL_MS, NEVER);
  }
  return true;
}

async function begin(fresh: RunId, left: Succession, context: RunContext): Promise<void> {
  const { run, owner, stored, fork, digest, body } = left;
  const { store, time, configuration } = context;
  const ttl_ms = configuration.checkpoint.ttl_s * 1000;
  const [{ header } = {}, ...records] = stored.records;
  if (!header) throw new Error(`${run} has no header`);
  const lease = await answerOf(store.acquire(fresh, owner), context);
  const { body: stored_body = body, ...kept } = header;
  const first = {
    ...kept,
    digest,
    continues: run,
    ...(stored_body !== undefined && { body: stored_body }),
  };
  try {
    await answerOf(store.append(lease, [{ seq: 0, header: first, events: [] }, ...records]), context);
    // Calls held by a replica that continued differently are no part of this client's answer.
    const held = fork ? undefined : await answerOf(readHeldCalls(store.notes, owner, run), context);
    if (held) await answerOf(noteHeldCalls(store.notes, owner, fresh, held, ttl_ms), context);
  } finally {
    await releaseLease(lease, context);
  }
  // The answer continues, so no notice may report it as cut.
  const { thread } = header;
  if (thread === undefined) return;
  const withdrawn = withdrawThreadNote(store.notes, owner, thread, run, ttl_ms);
  await inTime(
    withdrawn.catch(() => {}),
    time,
    STORE_WAIT_MAX_MS,
  );
}
