import { hash } from 'node:crypto';
import type { NoteKey } from './notes.ts';
import { NOTE_CHARACTERS_MAX } from './notes.ts';
import type { Seal } from './seal.ts';
import type { Owner } from './store.ts';

/** Names a note in a store. Hex, so that it can be a file; of JSON, so that no two notes share it. */
export const digestOfNote = (owner: Owner, { kind, name }: NoteKey): string =>
  hash('sha256', JSON.stringify([owner, kind, name]), 'hex');

/** Throws a {@link RangeError} for a value that is no note. */
export function assertNoteFits(value: string): void {
  if (value.length > NOTE_CHARACTERS_MAX) {
    throw new RangeError(`a note of ${value.length} characters is longer than ${NOTE_CHARACTERS_MAX}`);
  }
}

/** What is stored for a note: JSON without line breaks. Throws a {@link RangeError} for a value that is too long. */
export function encodeNote(digest: string, value: string, seal: Seal | undefined): string {
  assertNoteFits(value);
  return JSON.stringify(seal ? { sealed: seal.for(digest).seal(value) } : { value });
}

/** Undefined for a note that cannot be read, which counts as none. */
export function decodeNote(digest: string, text: string, seal: Seal | undefined): string | undefined {
  try {
    const { value, sealed } = JSON.parse(text) as { readonly value?: unknown; readonly sealed?: unknown };
    if (typeof sealed === 'string') return seal?.for(digest).open(sealed);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
