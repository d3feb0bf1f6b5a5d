import type { Owner } from './store.ts';

/**
 * Small facts that any replica may need later: which run an idempotency key stands for, what the next request of a
 * thread has to be told, what an upstream was found to do. A note belongs to one owner, no other can find it, and it
 * goes when its time is over.
 *
 * A note that cannot be read, because the key it was sealed with is gone or because it is damaged, counts as none: it
 * is told of once, and makes way for whatever is put or claimed in its place.
 */
export interface Notes {
  /** Keeps `value`, in place of an older one. */
  put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void>;
  /** Keeps `value` unless there is one already. Resolves with the one that is kept, so that all who claim agree. */
  claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string>;
  get(owner: Owner, key: NoteKey): Promise<string | undefined>;
  /** Gives the note to exactly one of those who ask, and removes it. */
  consume(owner: Owner, key: NoteKey): Promise<string | undefined>;
}

/** `name` may come from a client and be of any length and content: stores keep a digest of it. */
export interface NoteKey {
  readonly kind:
    | 'idempotency'
    | 'request'
    | 'thread'
    | 'lost_call'
    | 'held_calls'
    | 'reader'
    | 'told'
    | 'answer_id'
    | 'capabilities';
  readonly name: string;
}

/** Values are JSON of a few hundred bytes; the tail of a partial is the longest there is. */
export const NOTE_CHARACTERS_MAX = 16_384;

/** A note that counts as none. What it said, and whom it belongs to, is not known; `digest` is its name in the store. */
export class UnreadableNoteError extends Error {
  override readonly name = 'UnreadableNoteError';

  constructor(digest: string, kind: NoteKey['kind']) {
    super(
      `the ${kind} note ${digest} is damaged, or sealed with a key that is not configured; it counts as none`,
    );
  }
}
