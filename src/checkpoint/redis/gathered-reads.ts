import { Cluster } from 'ioredis';
import type { RedisConnection } from './connection.ts';

/** Redis performs one command at a time, so a long one would delay all others. */
const KEYS_MAX = 100;

interface Read {
  readonly key: string;
  readonly resolve: (value: string | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads strings. All reads of one turn are one command, which costs this process far less than one command each. In a
 * cluster, where the keys live on different servers, each read is a command of its own.
 */
export class GatheredReads {
  readonly #connection: RedisConnection;
  #gathered: Read[] = [];

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** Null if the key doesn't exist. Rejects like {@link RedisConnection.ask}. */
  get(key: string): Promise<string | null> {
    if (this.#connection.client instanceof Cluster) return this.#connection.ask((client) => client.get(key));
    return new Promise((resolve, reject) => {
      this.#gathered.push({ key, resolve, reject });
      if (this.#gathered.length === 1) queueMicrotask(() => this.#send());
    });
  }

  #send(): void {
    const gathered = this.#gathered;
    this.#gathered = [];
    for (let start = 0; start < gathered.length; start += KEYS_MAX)
      void this.#read(gathered.slice(start, start + KEYS_MAX));
  }

  async #read(reads: readonly Read[]): Promise<void> {
    const keys = reads.map(({ key }) => key);
    try {
      const values = await this.#connection.ask((client) => client.mget(keys));
      for (const [at, { resolve }] of reads.entries()) resolve(values[at] ?? null);
    } catch (error) {
      for (const { reject } of reads) reject(error);
    }
  }
}
