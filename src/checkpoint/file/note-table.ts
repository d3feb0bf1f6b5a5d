import type { Place } from './frame.ts';
import { LiveBytes } from './live-bytes.ts';
import type { Outcome } from './segment-log.ts';

/** How long taken notes are remembered, so that a concurrent copy doesn't bring one back. */
const TAKEN_REMEMBERED_MS = 600_000;

interface NoteState {
  readonly place: Place;
  readonly expires_at_ms: number;
  /** Present once the note was taken. */
  readonly taken_at_ms?: number;
}

export interface NewNote {
  readonly expires_at_ms: number;
  /** `put` replaces an existing note, `claim` yields to it, and `copy` moves the note at `origin`. */
  readonly mode: 'put' | 'claim' | 'copy';
  /** For a copy, the place of the copied note: `<segment>:<offset>`. */
  readonly origin: string;
  /** For a claim, the origin of the note that it may replace. */
  readonly replaceable: string;
}

/** The directory's notes as the log's frames define them. Every process derives the same state. */
export class NoteTable {
  readonly live = new LiveBytes();
  readonly #notes = new Map<string, NoteState>();

  has(digest: string): boolean {
    return this.#notes.has(digest);
  }

  keys(): Iterable<string> {
    return this.#notes.keys();
  }

  /** The note's place; undefined if it doesn't exist or has expired. */
  find(digest: string, now_ms: number): Place | undefined {
    const known = this.#notes.get(digest);
    return known && known.taken_at_ms === undefined && known.expires_at_ms > now_ms ? known.place : undefined;
  }

  /** Undefined if {@link find} finds nothing. */
  expiresAt(digest: string, now_ms: number): number | undefined {
    return this.find(digest, now_ms) && this.#notes.get(digest)?.expires_at_ms;
  }

  add(digest: string, note: NewNote, place: Place, at_ms: number): Outcome {
    const { mode, expires_at_ms, replaceable } = note;
    const current = this.find(digest, at_ms);
    const known = this.#notes.get(digest);
    if (
      mode === 'copy' &&
      known &&
      (known.taken_at_ms !== undefined || originOf(known.place) !== note.origin)
    )
      return { code: 'stale' };
    if (mode === 'claim' && current && originOf(current) !== replaceable)
      return { code: 'taken', place: current };
    this.#remove(digest);
    this.#notes.set(digest, { place, expires_at_ms });
    this.live.add(place.segment, place.bytes);
    return { code: 'ok', place };
  }

  take(digest: string, at_ms: number): Outcome {
    const place = this.find(digest, at_ms);
    const known = this.#notes.get(digest);
    this.#remove(digest);
    const expires_at_ms = known?.expires_at_ms ?? 0;
    this.#notes.set(digest, { place: place ?? NOWHERE, expires_at_ms, taken_at_ms: at_ms });
    return place ? { code: 'ok', place } : { code: 'missing' };
  }

  /** The damaged line replaces the note, so that reading the note finds the damage. */
  damage(digest: string, place: Place): void {
    const known = this.#notes.get(digest);
    if (!known) return;
    this.#remove(digest);
    this.#notes.set(digest, { place, expires_at_ms: known.expires_at_ms });
    this.live.add(place.segment, place.bytes);
  }

  expire(now_ms: number): void {
    for (const [digest, { expires_at_ms, taken_at_ms }] of this.#notes) {
      const isOver =
        taken_at_ms === undefined ? expires_at_ms <= now_ms : now_ms - taken_at_ms > TAKEN_REMEMBERED_MS;
      if (!isOver) continue;
      this.#remove(digest);
      this.#notes.delete(digest);
    }
  }

  *within(segment: number): Iterable<readonly [digest: string, place: Place, expires_at_ms: number]> {
    for (const [digest, { place, expires_at_ms, taken_at_ms }] of this.#notes)
      if (place.segment === segment && taken_at_ms === undefined) yield [digest, place, expires_at_ms];
  }

  #remove(digest: string): void {
    const known = this.#notes.get(digest);
    if (!known || known.taken_at_ms !== undefined) return;
    this.live.remove([known.place.segment, known.place.offset, known.place.bytes]);
  }
}

const NOWHERE: Place = { segment: 0, offset: 0, bytes: 0 };

export const originOf = ({ segment, offset }: Place): string => `${segment}:${offset}`;
