import type { Owner } from './store.ts';

/**
 * Small facts that any replica may need later: which run an idempotency key stands for, what the next request of a
 * thread has to be told. A note belongs to one owner, nobody else can find it, and it goes when its time is over.
 */
export interface Notes {
  /** Keeps `value`, in place of an older one. */
  put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void>;
  /** Keeps `value` unless there is one already. Resolves with the one that is kept, so that all who claim agree. */
  claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string>;
  get(owner: Owner, key: NoteKey): Promise<string | undefined>;
  /** Gives the note to exactly one of those who ask, and removes it. */
  take(owner: Owner, key: NoteKey): Promise<string | undefined>;
}

/** `name` may come from a client and be of any length and content: stores keep a digest of it. */
export interface NoteKey {
  readonly kind: 'idempotency' | 'request' | 'thread' | 'lost_call' | 'reader' | 'salvage';
  readonly name: string;
}

/** Values are JSON of a few hundred bytes; the tail of a partial is the longest there is. */
export const NOTE_CHARACTERS_MAX = 16_384;
