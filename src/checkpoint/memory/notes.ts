import { remember } from '../../lib/bounded-map.ts';
import type { Time } from '../../lib/time.ts';
import { assertNoteFits, digestOfNote } from '../note-codec.ts';
import type { NoteKey, Notes } from '../notes.ts';
import type { Owner } from '../store.ts';

/** Above this number the oldest note is dropped, expired or not. */
const NOTES_MAX = 100_000;

interface MemoryNote {
  readonly value: string;
  readonly expires_ms: number;
}

/** Keyed by digest, oldest first. Stores may share a table. */
export type MemoryNoteTable = Map<string, MemoryNote>;

export class MemoryNotes implements Notes {
  readonly #time: Time;
  readonly #table: MemoryNoteTable;

  constructor(time: Time, table: MemoryNoteTable) {
    this.#time = time;
    this.#table = table;
  }

  async put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void> {
    this.#keep(digestOfNote(owner, key), value, ttl_ms);
  }

  async claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string> {
    const digest = digestOfNote(owner, key);
    const kept = this.#find(digest);
    if (kept !== undefined) return kept;
    this.#keep(digest, value, ttl_ms);
    return value;
  }

  async get(owner: Owner, key: NoteKey): Promise<string | undefined> {
    return this.#find(digestOfNote(owner, key));
  }

  async extend(owner: Owner, key: NoteKey, ttl_ms: number): Promise<void> {
    const digest = digestOfNote(owner, key);
    const value = this.#find(digest);
    const expires_ms = Math.max(this.#table.get(digest)?.expires_ms ?? 0, this.#time.now() + ttl_ms);
    if (value !== undefined) this.#table.set(digest, { value, expires_ms });
  }

  async consume(owner: Owner, key: NoteKey): Promise<string | undefined> {
    const digest = digestOfNote(owner, key);
    const value = this.#find(digest);
    this.#table.delete(digest);
    return value;
  }

  #find(digest: string): string | undefined {
    const note = this.#table.get(digest);
    return note && note.expires_ms > this.#time.now() ? note.value : undefined;
  }

  #keep(digest: string, value: string, ttl_ms: number): void {
    assertNoteFits(value);
    remember(this.#table, digest, { value, expires_ms: this.#time.now() + ttl_ms }, NOTES_MAX);
  }
}
