import type { RedisAddress } from './address.ts';
import { COMMAND_MS } from './client.ts';
import { RedisConnection, type RedisConnectionOptions } from './connection.ts';

/** `checkpoint.replication`. */
export interface ReplicationSettings {
  /** How many replicas of Redis must have an epoch's opening before its lease is granted. 0: none. */
  readonly wait_replicas: number;
  readonly wait_ms: number;
}

/** Thrown by `acquire`: Redis has the opening but might lose it in a failover. The lease is given back. */
export class NotReplicatedError extends Error {
  override readonly name = 'NotReplicatedError';
}

/**
 * Waits until replicas of Redis have what was written through this connection. A separate connection, because `WAIT`
 * blocks all later commands on the same one, and a missing replica must not delay appends and signs of life.
 */
export class Replication {
  readonly connection: RedisConnection;
  readonly #settings: ReplicationSettings;
  /** How often the connection has broken. On a new connection, `WAIT` doesn't cover earlier writes. */
  #breaks = 0;
  /** The current `WAIT` and the next one. There is at most one of each, however many openings wait. */
  #current: Promise<unknown> | undefined;
  #next: Promise<number> | undefined;

  constructor(address: RedisAddress, settings: ReplicationSettings, options: RedisConnectionOptions) {
    const { command_ms = COMMAND_MS } = options;
    // An opening may have to wait behind one `WAIT`.
    this.connection = new RedisConnection(address, { ...options, command_ms: command_ms + settings.wait_ms });
    this.#settings = settings;
    this.connection.client.on('close', () => {
      this.#breaks++;
    });
  }

  /**
   * Calls `write` and resolves with its reply once enough replicas have the written data. Rejects with a {@link
   * NotReplicatedError} if they don't in time, or if that can't be determined.
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

  /**
   * The number of replicas that have everything written before. Callers that arrive during one `WAIT` share the next.
   */
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
