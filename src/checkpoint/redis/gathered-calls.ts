import { Cluster } from 'ioredis';
import type { RedisClient } from './client.ts';
import type { RedisConnection } from './connection.ts';

interface Gathered<Item, Result> extends PromiseWithResolvers<Result> {
  readonly item: Item;
}

export interface GatheredCallsOptions<Item, Result> {
  readonly connection: RedisConnection;
  /** Maximum number of items per call, because Redis does nothing else during a call. */
  readonly per_call: number;
  /** Makes one call; resolves with a result for each item, in order. */
  call(client: RedisClient, items: readonly Item[]): Promise<readonly Result[]>;
}

/**
 * Gathers what is requested in the same turn, so that it shares calls. In a cluster, whose keys are on different
 * servers, each item is a separate call.
 */
export class GatheredCalls<Item, Result> {
  readonly #options: GatheredCallsOptions<Item, Result>;
  readonly #per_call: number;
  #gathered: Gathered<Item, Result>[] = [];

  constructor(options: GatheredCallsOptions<Item, Result>) {
    this.#options = options;
    this.#per_call = options.connection.client instanceof Cluster ? 1 : options.per_call;
  }

  /** Resolves with the item's result. Rejects like {@link RedisConnection.ask}. */
  ask(item: Item): Promise<Result> {
    const gathered = { item, ...Promise.withResolvers<Result>() };
    if (this.#gathered.length === 0) queueMicrotask(() => this.#send());
    this.#gathered.push(gathered);
    return gathered.promise;
  }

  #send(): void {
    const gathered = this.#gathered;
    this.#gathered = [];
    for (let start = 0; start < gathered.length; start += this.#per_call)
      void this.#call(gathered.slice(start, start + this.#per_call));
  }

  async #call(batch: readonly Gathered<Item, Result>[]): Promise<void> {
    const { connection, call } = this.#options;
    const items = batch.map(({ item }) => item);
    try {
      const results = await connection.ask((client) => call(client, items));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
