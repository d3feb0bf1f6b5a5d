import type { Owner } from './store.ts';

/**
 * Small facts that any replica may need later: the run of an idempotency key or of a step of a task, the claim of one of its tool calls, a notice for
 * the next request of a thread, a capability of an upstream. A note belongs to one owner, no other owner can find it, and it expires.
 *
 * A note that cannot be read, because the key that sealed it is gone or because it is damaged, counts as absent: the
 * store reports it once, and replaces it by whatever is put or claimed under its name.
 */
export interface Notes {
  /** Keeps `value`, in place of an older one. */
  put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void>;
  /** Keeps `value` unless the note exists already. Resolves with the value that is kept, so that all claimants agree. */
  claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string>;
  get(owner: Owner, key: NoteKey): Promise<string | undefined>;
  /** Has the note last for at least so long from now on. Where there is none, nothing happens. */
  extend(owner: Owner, key: NoteKey, ttl_ms: number): Promise<void>;
  /** Gives the note to exactly one caller, and removes it. */
  consume(owner: Owner, key: NoteKey): Promise<string | undefined>;
}

/** `name` may come from a client and be of any length and content: stores keep a digest of it. */
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

/** Values are JSON of a few hundred bytes; the tail of a partial is the longest there is. */
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
