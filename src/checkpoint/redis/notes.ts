import { digestOfNote, encodeNote, type NoteReader } from '../note-codec.ts';
import type { NoteKey, Notes } from '../notes.ts';
import type { Seal } from '../seal.ts';
import type { Owner } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { GatheredCalls } from './gathered-calls.ts';
import { noteKey } from './keys.ts';

/** Maximum number of notes per command. */
const NOTES_PER_READ = 100;

export interface RedisNotesOptions {
  readonly connection: RedisConnection;
  readonly seal: Seal | undefined;
  readonly reader: NoteReader;
}

export class RedisNotes implements Notes {
  readonly #connection: RedisConnection;
  readonly #seal: Seal | undefined;
  readonly #reader: NoteReader;
  readonly #reads: GatheredCalls<string, string | null>;

  constructor({ connection, seal, reader }: RedisNotesOptions) {
    this.#connection = connection;
    this.#seal = seal;
    this.#reader = reader;
    this.#reads = new GatheredCalls({
      connection,
      per_call: NOTES_PER_READ,
      call: (client, keys: readonly string[]) => client.mget([...keys]),
    });
  }

  async put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void> {
    const digest = digestOfNote(owner, key);
    const text = encodeNote(digest, value, this.#seal);
    await this.#connection.ask((client) => client.set(noteKey(digest), text, 'PX', Math.ceil(ttl_ms)));
  }

  async claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string> {
    const digest = digestOfNote(owner, key);
    const [stored, text] = [noteKey(digest), encodeNote(digest, value, this.#seal)];
    const ttl = Math.ceil(ttl_ms);
    const { kind } = key;
    return this.#reader.claimed({ digest, kind, value, text }, async (in_place_of?: Buffer) => {
      const kept = await this.#connection.ask((client) =>
        in_place_of === undefined
          ? client.setBuffer(stored, text, 'PX', ttl, 'NX', 'GET')
          : client.holdfastReplaceBuffer(stored, in_place_of, text, String(ttl)),
      );
      return kept ?? Buffer.from(text);
    });
  }

  async get(owner: Owner, key: NoteKey): Promise<string | undefined> {
    const digest = digestOfNote(owner, key);
    return this.#read(digest, key, await this.#reads.ask(noteKey(digest)));
  }

  async extend(owner: Owner, key: NoteKey, ttl_ms: number): Promise<void> {
    const digest = digestOfNote(owner, key);
    await this.#connection.ask((client) => client.pexpire(noteKey(digest), Math.ceil(ttl_ms), 'GT'));
  }

  async consume(owner: Owner, key: NoteKey): Promise<string | undefined> {
    const digest = digestOfNote(owner, key);
    return this.#read(digest, key, await this.#connection.ask((client) => client.getdel(noteKey(digest))));
  }

  #read(digest: string, { kind }: NoteKey, text: string | null): string | undefined {
    return text === null ? undefined : this.#reader.read(digest, kind, text);
  }
}
