import type { RunHeader } from '../journal.ts';
import {
  encodeEntry,
  entryOf,
  type IndexedRun,
  indexedRuns,
  RUN_LASTS_MS,
  RUNS_INDEXED_MAX,
  type RunIndex,
  threadTags,
} from '../run-index.ts';
import type { Seal } from '../seal.ts';
import type { Owner, RunId } from '../store.ts';
import type { RedisConnection } from './redis-connection.ts';
import { indexKey } from './redis-keys.ts';

export interface RedisRunIndexOptions {
  readonly connection: RedisConnection;
  readonly seal: Seal | undefined;
  /** Of a run. */
  readonly ttl_ms: number;
}

/** The runs of each owner, under one key: one slot of a cluster holds all of them, and they expire together. */
export class RedisRunIndex implements RunIndex {
  readonly #connection: RedisConnection;
  readonly #seal: Seal | undefined;
  readonly #keep_ms: number;

  constructor({ connection, seal, ttl_ms }: RedisRunIndexOptions) {
    this.#connection = connection;
    this.#seal = seal;
    this.#keep_ms = ttl_ms + RUN_LASTS_MS;
  }

  /** Sent without being waited for: in a cluster the index may be on a server that is away while that of the run is not. */
  add(owner: Owner, run: RunId, header: RunHeader): void {
    const began_ms = Math.floor(header.created_at_ms);
    const values = [
      began_ms,
      entryOf(owner, run, header, this.#seal),
      began_ms - this.#keep_ms,
      -1 - RUNS_INDEXED_MAX,
    ];
    void this.#connection
      .ask((client) => client.holdfastEnter(indexKey(owner), ...values.map(String), String(this.#keep_ms)))
      .catch(ignore);
  }

  /** `header`: of the run; without it the entry stays, until it is found that its run is gone. */
  async remove(owner: Owner, run: RunId, header: RunHeader | undefined): Promise<void> {
    if (!header) return;
    const { created_at_ms, thread } = header;
    const tags = thread === undefined ? [undefined] : threadTags(owner, thread, this.#seal);
    await this.#remove(
      owner,
      tags.map((tag) => encodeEntry(run, created_at_ms, tag)),
    );
  }

  async list(owner: Owner, thread?: string): Promise<readonly IndexedRun[]> {
    const entries = await this.#connection.ask((client) =>
      client.zrange(indexKey(owner), 0, String(RUNS_INDEXED_MAX - 1), 'REV'),
    );
    return indexedRuns(entries, owner, thread, this.#seal);
  }

  async forget(owner: Owner, entries: readonly IndexedRun[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#remove(
      owner,
      entries.map(({ entry }) => entry),
    );
  }

  async #remove(owner: Owner, entries: readonly string[]): Promise<void> {
    await this.#connection.ask((client) => client.zrem(indexKey(owner), ...entries));
  }
}

const ignore = () => {};
