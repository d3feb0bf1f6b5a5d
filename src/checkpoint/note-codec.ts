import { hash } from 'node:crypto';
import { LastFindings } from './damage-reports.ts';
import { NOTE_CHARACTERS_MAX, type NoteKey, UnreadableNoteError } from './notes.ts';
import { believedText, withProof } from './proven-text.ts';
import type { Seal } from './seal.ts';
import type { Owner } from './store.ts';

/** A note's name in a store. Hex, so that it works as a file name; hashed from JSON, so that no two notes share it. */
export const digestOfNote = (owner: Owner, { kind, name }: NoteKey): string =>
  hash('sha256', JSON.stringify([owner, kind, name]), 'hex');

/** Throws a {@link RangeError} if the value is too long. */
export function assertNoteFits(value: string): void {
  if (value.length > NOTE_CHARACTERS_MAX) {
    throw new RangeError(`a note of ${value.length} characters is longer than ${NOTE_CHARACTERS_MAX}`);
  }
}

/** The place that a note is sealed or proven for. The digest, from owner, kind and name, is the subject. */
const PLACE = 'note';

/** The stored form of a note: JSON without line breaks. Throws a {@link RangeError} if the value is too long. */
export function encodeNote(digest: string, value: string, seal: Seal | undefined): string {
  assertNoteFits(value);
  const own = seal?.for(digest);
  if (own?.encrypts) return JSON.stringify({ sealed: own.seal(value, PLACE) });
  return withProof(JSON.stringify({ value }), own, PLACE);
}

/** Undefined if the note can't be read, which counts as absent. */
export function decodeNote(digest: string, text: string, seal: Seal | undefined): string | undefined {
  try {
    const { value, sealed } = JSON.parse(text) as { readonly value?: unknown; readonly sealed?: unknown };
    const own = seal?.for(digest);
    if (typeof sealed === 'string') return own?.open(sealed, PLACE);
    return typeof value === 'string' && 'value' in believedText(text, own, PLACE) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** How often an unreadable note may change before a claim gives up replacing it. */
const REPLACEMENTS_MAX = 16;

/** A note to be claimed. `text`: its stored form. */
export interface ClaimedNote {
  readonly digest: string;
  readonly kind: NoteKey['kind'];
  readonly value: string;
  readonly text: string;
}

/** Decodes stored notes and reports each unreadable one once. */
export class NoteReader {
  readonly #seal: Seal | undefined;
  readonly #onError: (error: UnreadableNoteError) => void;
  readonly #unreadable = new LastFindings<string>();

  constructor(seal: Seal | undefined, onError: (error: UnreadableNoteError) => void) {
    this.#seal = seal;
    this.#onError = onError;
  }

  /** Undefined if the note can't be read, which counts as absent. */
  read(digest: string, kind: NoteKey['kind'], text: string): string | undefined {
    const value = decodeNote(digest, text, this.#seal);
    if (value === undefined && this.#unreadable.isNew(digest, kind))
      this.#onError(new UnreadableNoteError(digest, kind));
    return value;
  }

  /**
   * Resolves with the value that a claim keeps. `keep` stores the note unless one other than `in_place_of` exists, and
   * resolves with the stored form. An unreadable note is replaced.
   */
  async claimed<Stored extends string | Buffer>(
    { digest, kind, value: own, text }: ClaimedNote,
    keep: (in_place_of?: Stored) => Promise<Stored>,
  ): Promise<string> {
    let stored = await keep();
    for (let attempt = 0; ; attempt++) {
      const kept = stored.toString();
      // The text was just encoded here, so it needs no verification.
      if (kept === text) return own;
      const value = this.read(digest, kind, kept);
      if (value !== undefined) return value;
      if (attempt === REPLACEMENTS_MAX) throw new Error('the note is being claimed by too many at once');
      stored = await keep(stored);
    }
  }
}
