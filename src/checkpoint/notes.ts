import type { Owner } from './store.ts';

/**
 * Small facts that any replica may need later: the run of an idempotency key or of a task step, the claim of a tool
 * call, a notice for a thread's next request, a capability of an upstream. A note belongs to one owner, is invisible to
 * all others, and expires.
 *
 * A note that can't be read, because its sealing key is gone or it is damaged, counts as absent. The store reports it
 * once and lets a put or claim replace it.
 */
export interface Notes {
  /** Stores `value`, replacing an existing note. */
  put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void>;
  /** Stores `value` unless the note already exists. Resolves with the stored value, so that all claimants agree. */
  claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string>;
  get(owner: Owner, key: NoteKey): Promise<string | undefined>;
  /** Extends the note's life to at least `ttl_ms` from now. Does nothing if there is no note. */
  extend(owner: Owner, key: NoteKey, ttl_ms: number): Promise<void>;
  /** Removes the note and returns it to exactly one caller. */
  consume(owner: Owner, key: NoteKey): Promise<string | undefined>;
}

/** `name` may come from a client and have any length and content; stores keep only a digest. */
export interface NoteKey {
  readonly kind:
    | 'idempotency'
    | 'request'
    | 'successor'
    | 'thread'
    | 'lost_call'
    | 'held_calls'
    | 'reader'
    | 'detached'
    | 'told'
    | 'answer_id'
    | 'capabilities'
    | 'step'
    | 'task'
    | 'task_step'
    | 'task_session'
    | 'session_of_task'
    | 'session_number'
    | 'task_terms'
    | 'task_usage'
    | 'task_state'
    | 'task_end'
    | 'task_summary'
    | 'task_divergence'
    | 'task_number'
    | 'owner_task'
    | 'last_task'
    | 'due_task'
    | 'due_number'
    | 'due_claim'
    | 'last_due'
    | 'task_call'
    | 'call_number'
    | 'call_claim'
    | 'call_release'
    | 'call_result'
    | 'replica'
    | 'replica_sign';
  readonly name: string;
}

/** Values are JSON of a few hundred bytes. The longest is the tail of a partial answer. */
export const NOTE_CHARACTERS_MAX = 16_384;

/** A note that counts as absent. Its content and owner are unknown; `digest` is its name in the store. */
export class UnreadableNoteError extends Error {
  override readonly name = 'UnreadableNoteError';

  constructor(digest: string, kind: NoteKey['kind']) {
    super(
      `the ${kind} note ${digest} is damaged, without a proof, or sealed with a key that is not configured; it counts as none`,
    );
  }
}
