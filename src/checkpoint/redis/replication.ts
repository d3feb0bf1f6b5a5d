import type { RedisAddress } from './address.ts';
import { COMMAND_MS } from './client.ts';
import { RedisConnection, type RedisConnectionOptions } from './connection.ts';

/** `checkpoint.replication`. */
export interface ReplicationSettings {
  /** How many replicas of Redis have to have the opening of an epoch before its lease is given. 0: none. */
  readonly wait_replicas: number;
  readonly wait_ms: number;
}

/** Thrown by `acquire`: Redis has the opening, and might lose it in a failover. The lease is given back. */
export class NotReplicatedError extends Error {
  override readonly name = 'NotReplicatedError';
}

/**
 * Waits until replicas of Redis have what was written through this connection. It is a connection of its own, because `WAIT`
 * holds up whatever is sent behind it on the same one: appends and signs of life must not wait for a replica that is away.
 */
export class Replication {
  readonly connection: RedisConnection;
  readonly #settings: ReplicationSettings;
  /** How often the connection has broken: on another one, `WAIT` knows nothing of what was written before. */
  #breaks = 0;
  /** The `WAIT` under way, and the one after it. Neither is more than one, however many openings there are. */
  #current: Promise<unknown> | undefined;
  #next: Promise<number> | undefined;

  constructor(address: RedisAddress, settings: ReplicationSettings, options: RedisConnectionOptions) {
    const { command_ms = COMMAND_MS } = options;
    // An opening may be behind one `WAIT`.
    this.connection = new RedisConnection(address, { ...options, command_ms: command_ms + settings.wait_ms });
    this.#settings = settings;
    this.connection.client.on('close', () => {
      this.#breaks++;
    });
  }

  /**
   * Calls `write`, and resolves with what it does once enough replicas have what it has written. Rejects with a
   * {@link NotReplicatedError} when they do not have it in time, or when that cannot be known.
   */
  async replicated<Reply>(write: (connection: RedisConnection) => Promise<Reply>): Promise<Reply> {
    const { wait_replicas, wait_ms } = this.#settings;
    const breaks = this.#breaks;
    const reply = await write(this.connection);
    this.#next ??= this.#wait();
    const replicas = await this.#next;
    if (breaks !== this.#breaks)
      throw new NotReplicatedError(
        'the connection broke before it was known whether replicas have the lease',
      );
    if (replicas < wait_replicas)
      throw new NotReplicatedError(
        `${replicas} of ${wait_replicas} replicas of Redis had the lease after ${wait_ms} ms (checkpoint.replication)`,
      );
    return reply;
  }

  /** How many replicas have everything that was written before: one `WAIT` for all that ask while another is under way. */
  async #wait(): Promise<number> {
    const { wait_replicas, wait_ms } = this.#settings;
    await this.#current;
    this.#next = undefined;
    const asked = this.connection.ask((client) => client.wait(wait_replicas, wait_ms));
    this.#current = asked.catch(ignore);
    return asked;
  }
}

const ignore = () => {};
