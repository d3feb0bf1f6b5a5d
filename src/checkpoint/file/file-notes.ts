import { checkedLine, openLine } from '../checked-line.ts';
import { DirectoryCursor } from './directory-cursor.ts';
import type { FileDirectory } from './file-directory.ts';
import { refused } from './file-refusal.ts';

/** Directory entries looked at in one pass of the sweep. */
const ENTRIES_PER_PASS = 500;
/** Younger files are left alone by the sweep: another process may be about to write them. */
const UNTOUCHED_MS = 60_000;
/** How often somebody else may be faster before a claim is given up. */
const CLAIMS_MAX = 16;
/** The text of a note whose file is damaged: no note has it. */
const DAMAGED = '';

/**
 * Notes as files, as the writing thread keeps them. A note is one line, `[expires_at_ms, text]` with its checksum,
 * written under another name first, so that whoever finds it finds all of it.
 *
 * Only a note whose time is over, or that cannot be read, is ever moved out of the way of a claim. Should another process
 * put or claim it in that very moment, it is put back.
 */
export class FileNotes {
  readonly #directory: FileDirectory;
  readonly #replica: string;
  readonly #cursor: DirectoryCursor;

  /** `replica` tells the temporary files of processes apart. */
  constructor(options: { readonly directory: FileDirectory; readonly replica: string }) {
    this.#directory = options.directory;
    this.#replica = options.replica;
    this.#cursor = new DirectoryCursor(options.directory);
  }

  put(digest: string, text: string, expires_at_ms: number): void {
    const temporary = this.#write(digest, text, expires_at_ms);
    if (!this.#directory.rename(temporary, digest)) throw refused('ENOENT', `${temporary} was removed`);
  }

  /** The text that is kept: this one, unless there is another already than `in_place_of`. */
  claim(digest: string, text: string, expires_at_ms: number, in_place_of?: string): string {
    for (let attempt = 0; attempt < CLAIMS_MAX; attempt++) {
      const kept = this.get(digest);
      if (kept !== undefined && kept !== in_place_of) return kept;
      const temporary = this.#write(digest, text, expires_at_ms);
      const isOurs = this.#directory.link(temporary, digest);
      this.#directory.remove(temporary);
      if (isOurs) return text;
      // What was in the way may be a claim that was made since we looked; moved, even for a moment, it would let a third in.
      this.#removeUnless(digest, (found) => found !== undefined && found !== in_place_of);
    }
    throw refused('EAGAIN', 'the note is being claimed by too many at once');
  }

  /** What cannot be read is given as a text that is no note. */
  get(digest: string): string | undefined {
    return this.#read(digest);
  }

  take(digest: string): string | undefined {
    const taken = this.#temporary(digest);
    if (!this.#directory.rename(digest, taken)) return undefined;
    const text = this.#read(taken);
    this.#directory.remove(taken);
    return text;
  }

  /** Removes notes whose time is over, and what dead processes left behind. */
  sweep(): void {
    this.#cursor.advance(ENTRIES_PER_PASS, (name) => {
      if (this.#isUntouched(name)) this.#removeUnless(name, isOfUse);
      return true;
    });
  }

  close(): void {
    this.#cursor.close();
  }

  #isUntouched(name: string): boolean {
    const modified_ms = this.#directory.modified_ms(name);
    return modified_ms !== undefined && Date.now() - modified_ms >= UNTOUCHED_MS;
  }

  #removeUnless(name: string, isKept: (text: string | undefined) => boolean): void {
    if (isKept(this.#read(name))) return;
    const moved = this.#temporary(name);
    if (!this.#directory.rename(name, moved)) return;
    if (isKept(this.#read(moved))) this.#directory.link(moved, name);
    this.#directory.remove(moved);
  }

  /** Undefined when there is none, or its time is over. */
  #read(name: string): string | undefined {
    const bytes = this.#directory.read(name);
    if (!bytes) return undefined;
    const line = openLine(bytes);
    if ('reason' in line || !Array.isArray(line.value)) return DAMAGED;
    const [expires_at_ms, text] = line.value as [unknown, unknown];
    if (typeof text !== 'string') return DAMAGED;
    return Number(expires_at_ms) > Date.now() ? text : undefined;
  }

  #write(digest: string, text: string, expires_at_ms: number): string {
    const temporary = this.#temporary(digest);
    this.#directory.replace(temporary, checkedLine(JSON.stringify([expires_at_ms, text])));
    return temporary;
  }

  #temporary(name: string): string {
    return `${name}.${this.#replica}.tmp`;
  }
}

const isOfUse = (text: string | undefined): boolean => text !== undefined && text !== DAMAGED;
