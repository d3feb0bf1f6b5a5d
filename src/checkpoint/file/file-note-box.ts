import { decodeNote, digestOfNote, encodeNote } from '../note-codec.ts';
import type { NoteKey, Notes } from '../notes.ts';
import type { Seal } from '../seal.ts';
import type { Owner } from '../store.ts';
import type { FileWriter } from './file-writer.ts';

/** The notes of a file store on the thread that serves: what they say is sealed and opened here. */
export class FileNoteBox implements Notes {
  readonly #writer: FileWriter;
  readonly #seal: Seal | undefined;

  constructor(writer: FileWriter, seal: Seal | undefined) {
    this.#writer = writer;
    this.#seal = seal;
  }

  async put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void> {
    await this.#writer.request('put_note', this.#encode(owner, key, value, ttl_ms));
  }

  async claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string> {
    const note = this.#encode(owner, key, value, ttl_ms);
    const kept = decodeNote(note.digest, await this.#writer.request('claim_note', note), this.#seal);
    if (kept !== undefined) return kept;
    // It was sealed with a key that is gone, so that nobody can know what was claimed.
    await this.#writer.request('put_note', note);
    return value;
  }

  async get(owner: Owner, key: NoteKey): Promise<string | undefined> {
    return this.#ask('get_note', digestOfNote(owner, key));
  }

  async take(owner: Owner, key: NoteKey): Promise<string | undefined> {
    return this.#ask('take_note', digestOfNote(owner, key));
  }

  async #ask(kind: 'get_note' | 'take_note', digest: string): Promise<string | undefined> {
    const text = await this.#writer.request(kind, { digest });
    return text === undefined ? undefined : decodeNote(digest, text, this.#seal);
  }

  #encode(owner: Owner, key: NoteKey, value: string, ttl_ms: number) {
    const digest = digestOfNote(owner, key);
    return { digest, text: encodeNote(digest, value, this.#seal), expires_at_ms: Date.now() + ttl_ms };
  }
}
