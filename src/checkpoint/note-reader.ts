import { LastFindings } from './last-findings.ts';
import { decodeNote } from './note-codec.ts';
import { type NoteKey, UnreadableNoteError } from './notes.ts';
import type { Seal } from './seal.ts';

/** How often a note that cannot be read may be another one by the time it is replaced. */
export const REPLACEMENTS_MAX = 16;

/** Reads what is stored for notes, and tells once of each that it cannot read. */
export class NoteReader {
  readonly #seal: Seal | undefined;
  readonly #onError: (error: UnreadableNoteError) => void;
  readonly #unreadable = new LastFindings<string>();

  constructor(seal: Seal | undefined, onError: (error: UnreadableNoteError) => void) {
    this.#seal = seal;
    this.#onError = onError;
  }

  /** Undefined for a note that cannot be read, which counts as none. */
  read(digest: string, kind: NoteKey['kind'], text: string): string | undefined {
    const value = decodeNote(digest, text, this.#seal);
    if (value === undefined && this.#unreadable.isNew(digest, kind))
      this.#onError(new UnreadableNoteError(digest, kind));
    return value;
  }
}
