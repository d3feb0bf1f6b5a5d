import type { NoteReader } from '../note-codec.ts';
import { digestOfNote, encodeNote } from '../note-codec.ts';
import type { NoteKey, Notes } from '../notes.ts';
import type { Seal } from '../seal.ts';
import type { Owner } from '../store.ts';
import type { Writer } from './writer.ts';

export interface FileNotesOptions {
  readonly writer: Writer;
  readonly seal: Seal | undefined;
  readonly reader: NoteReader;
}

/** The file store's notes on the serving thread, which seals and opens them. */
export class FileNotes implements Notes {
  readonly #writer: Writer;
  readonly #seal: Seal | undefined;
  readonly #reader: NoteReader;

  constructor({ writer, seal, reader }: FileNotesOptions) {
    this.#writer = writer;
    this.#seal = seal;
    this.#reader = reader;
  }

  async put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void> {
    await this.#writer.request('put_note', this.#encode(owner, key, value, ttl_ms));
  }

  async claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string> {
    const note = this.#encode(owner, key, value, ttl_ms);
    const { digest, text } = note;
    const { kind } = key;
    return this.#reader.claimed({ digest, kind, value, text }, (in_place_of?: string) =>
      this.#writer.request('claim_note', { ...note, ...(in_place_of !== undefined && { in_place_of }) }),
    );
  }

  async get(owner: Owner, key: NoteKey): Promise<string | undefined> {
    return this.#ask('get_note', owner, key);
  }

  async extend(owner: Owner, key: NoteKey, ttl_ms: number): Promise<void> {
    const note = { digest: digestOfNote(owner, key), expires_at_ms: Date.now() + ttl_ms };
    while (!(await this.#writer.request('extend_note', note)));
  }

  async consume(owner: Owner, key: NoteKey): Promise<string | undefined> {
    return this.#ask('take_note', owner, key);
  }

  async #ask(kind: 'get_note' | 'take_note', owner: Owner, key: NoteKey): Promise<string | undefined> {
    const digest = digestOfNote(owner, key);
    const text = await this.#writer.request(kind, { digest });
    return text === undefined ? undefined : this.#reader.read(digest, key.kind, text);
  }

  #encode(owner: Owner, key: NoteKey, value: string, ttl_ms: number) {
    const digest = digestOfNote(owner, key);
    return { digest, text: encodeNote(digest, value, this.#seal), expires_at_ms: Date.now() + ttl_ms };
  }
}
