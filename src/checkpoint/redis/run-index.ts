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
import type { RedisConnection } from './connection.ts';
import { indexKey, RELEASED_LISTS, REPLICAS_KEYS, runsKey } from './keys.ts';

export interface RedisRunIndexOptions {
  readonly connection: RedisConnection;
  readonly seal: Seal | undefined;
  /** How long a run is kept. */
  readonly ttl_ms: number;
}

/** Keeps each owner's runs under one key, so that they share a cluster slot and expire together. */
export class RedisRunIndex implements RunIndex {
  readonly #connection: RedisConnection;
  readonly #seal: Seal | undefined;
  readonly #keep_ms: number;

  constructor({ connection, seal, ttl_ms }: RedisRunIndexOptions) {
    this.#connection = connection;
    this.#seal = seal;
    this.#keep_ms = ttl_ms + RUN_LASTS_MS;
  }

  /** Not awaited: in a cluster, the index's server may be away while the run's isn't. */
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

  /** `header`: the run's header. Without it the entry stays until its run is found to be gone. */
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

/** How many entries one step through a list requests. */
const STEP = '256';

/** A run on a replica's list or on a list of released runs. */
export interface ListedRun {
  readonly list: string;
  readonly run: RunId;
  readonly epoch: number;
}

/**
 * Lists runs that may have become orphans, so that a sweep needn't scan all runs. A run is listed before it is held and
 * removed after it is let go, so the lists are complete.
 */
export class RedisRunLists {
  readonly #connection: RedisConnection;
  readonly #keep_ms: number;

  /** `keep_ms`: how long a list is kept after its last addition. */
  constructor(connection: RedisConnection, keep_ms: number) {
    this.#connection = connection;
    this.#keep_ms = keep_ms;
  }

  async add({ list, run, epoch }: ListedRun): Promise<void> {
    const key = runsKey(list);
    await Promise.all([
      this.#connection.ask((client) => client.sadd(key, `${run}:${epoch}`)),
      this.#connection.ask((client) => client.pexpire(key, this.#keep_ms)),
    ]);
  }

  async remove({ list, run, epoch }: ListedRun): Promise<void> {
    await this.#connection.ask((client) => client.srem(runsKey(list), `${run}:${epoch}`));
  }

  /** Yields released runs and the runs of lost replicas in batches. */
  async *unheld(isLost: (replica: string) => Promise<boolean>): AsyncGenerator<readonly ListedRun[]> {
    const counts = RELEASED_LISTS.map(async (list) => ({
      list,
      count: await this.#connection.ask((client) => client.scard(runsKey(list))),
    }));
    for (const { list, count } of await Promise.all(counts)) if (count > 0) yield* this.listed(list);
    const known = REPLICAS_KEYS.map(async (key) => ({
      key,
      replicas: await this.#connection.ask((client) => client.smembers(key)),
    }));
    for (const { key, replicas } of await Promise.all(known)) {
      for (const replica of replicas) {
        if (!(await isLost(replica))) continue;
        yield* this.listed(replica);
        await this.#forget(key, replica);
      }
    }
  }

  /** Yields one list's runs in batches. */
  async *listed(list: string): AsyncGenerator<readonly ListedRun[]> {
    let cursor = '0';
    do {
      const [next, members] = await this.#connection.ask((client) =>
        client.sscan(runsKey(list), cursor, 'COUNT', STEP),
      );
      yield members.map((member) => parse(list, member));
      cursor = next;
    } while (cursor !== '0');
  }

  /** Removes a lost replica without runs. If it comes back, it adds itself again. */
  async #forget(key: string, replica: string): Promise<void> {
    const left = await this.#connection.ask((client) => client.exists(runsKey(replica)));
    if (left === 0) await this.#connection.ask((client) => client.srem(key, replica));
  }
}

function parse(list: string, member: string): ListedRun {
  const colon = member.lastIndexOf(':');
  return { list, run: member.slice(0, colon) as RunId, epoch: Number(member.slice(colon + 1)) };
}
