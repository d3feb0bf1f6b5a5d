import { decodeNote, digestOfNote, encodeNote } from '../note-codec.ts';
import type { NoteKey, Notes } from '../notes.ts';
import type { Seal } from '../seal.ts';
import type { Owner } from '../store.ts';
import type { RedisConnection } from './redis-connection.ts';
import { noteKey } from './redis-keys.ts';

export class RedisNotes implements Notes {
  readonly #connection: RedisConnection;
  readonly #seal: Seal | undefined;

  constructor(connection: RedisConnection, seal: Seal | undefined) {
    this.#connection = connection;
    this.#seal = seal;
  }

  async put(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<void> {
    const digest = digestOfNote(owner, key);
    const text = encodeNote(digest, value, this.#seal);
    await this.#connection.ask((client) => client.set(noteKey(digest), text, 'PX', Math.ceil(ttl_ms)));
  }

  async claim(owner: Owner, key: NoteKey, value: string, ttl_ms: number): Promise<string> {
    const digest = digestOfNote(owner, key);
    const text = encodeNote(digest, value, this.#seal);
    const kept = await this.#connection.ask((client) =>
      client.set(noteKey(digest), text, 'PX', Math.ceil(ttl_ms), 'NX', 'GET'),
    );
    return this.#decode(digest, kept) ?? value;
  }

  async get(owner: Owner, key: NoteKey): Promise<string | undefined> {
    const digest = digestOfNote(owner, key);
    return this.#decode(digest, await this.#connection.ask((client) => client.get(noteKey(digest))));
  }

  async take(owner: Owner, key: NoteKey): Promise<string | undefined> {
    const digest = digestOfNote(owner, key);
    return this.#decode(digest, await this.#connection.ask((client) => client.getdel(noteKey(digest))));
  }

  #decode(digest: string, text: string | null): string | undefined {
    return text === null ? undefined : decodeNote(digest, text, this.#seal);
  }
}
