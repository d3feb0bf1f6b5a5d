import { LastFindings } from './last-findings.ts';
import { decodeNote } from './note-codec.ts';
import { type NoteKey, UnreadableNoteError } from './notes.ts';
import type { Seal } from './seal.ts';

/** How often a note that cannot be read may be another one by the time it is replaced. */
const REPLACEMENTS_MAX = 16;

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

  /**
   * The value that a claim has kept. `keep` stores the note unless there is one other than `in_place_of`, and resolves
   * with what is stored then: one that cannot be read makes way.
   */
  async claimed<Stored extends string | Buffer>(
    digest: string,
    kind: NoteKey['kind'],
    keep: (in_place_of?: Stored) => Promise<Stored>,
  ): Promise<string> {
    let stored = await keep();
    for (let attempt = 0; ; attempt++) {
      const value = this.read(digest, kind, stored.toString());
      if (value !== undefined) return value;
      if (attempt === REPLACEMENTS_MAX) throw new Error('the note is being claimed by too many at once');
      stored = await keep(stored);
    }
  }
}
