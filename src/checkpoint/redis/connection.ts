import fastifyRedis from '@fastify/redis';
import fastify, { type FastifyInstance } from 'fastify';
import { systemTime, type Time } from '../../lib/time.ts';
import type { RedisAddress } from './address.ts';
import { createRedisClient, type RedisClient } from './client.ts';
import { isPermanent, RedisFailureError, reasonOf, refusalOf } from './refusal.ts';
import { requireAllKeys, requireVersion } from './server-checks.ts';

/** How long a start waits for Redis. */
const START_MAX_MS = 5000;
/** How long a client that has given up is left alone. */
const REVIVAL_MS = 1000;
/** The client's error for a command that it did not send. */
const NOT_SENT = /enableOfflineQueue/;
const LOST = new Error('the connection was lost');

export interface RedisConnectionOptions {
  /** Default {@link systemTime}. */
  readonly time?: Time | undefined;
  /** See {@link createRedisClient}. */
  readonly command_ms?: number | undefined;
  /** In place of one of its own. */
  readonly client?: RedisClient | undefined;
}

/**
 * The client of one store, from its first attempt to connect until it is closed. Once it is connected it belongs to a
 * Fastify instance of its own: stores are opened before there is a server, and are closed after it.
 */
export class RedisConnection {
  readonly client: RedisClient;
  readonly time: Time;
  readonly #address: RedisAddress;
  #host: FastifyInstance | undefined;
  /** Why there is no connection: the errors of commands only say that there is none. */
  #cause: unknown;
  #fault_ms = Number.NEGATIVE_INFINITY;
  #closing: Promise<void> | undefined;

  constructor(address: RedisAddress, { time = systemTime, command_ms, client }: RedisConnectionOptions = {}) {
    this.#address = address;
    this.time = time;
    this.client = client ?? createRedisClient(address, command_ms);
    // Sentinels and nodes of a cluster say more about a failure than the error that follows.
    for (const event of ['sentinelError', 'node error', 'error']) {
      this.client.on(event, (error: unknown) => this.#fail(error));
    }
    for (const event of ['close', '-node']) {
      this.client.on(event, () => {
        this.#fault_ms = time.now();
      });
    }
    this.client.on('ready', () => {
      this.#cause = undefined;
    });
    if (!client) this.client.once('ready', () => void this.#adopt().catch(ignore));
    this.client.on('end', () => this.#revive());
  }

  /** Without user and password. */
  get name(): string {
    return this.#address.name;
  }

  /** When something last kept this replica from hearing of others; minus infinity if nothing has. */
  get fault_ms(): number {
    return this.#fault_ms;
  }

  /**
   * Connects, and sees whether `trial` works. Rejects with a {@link StoreConfigurationError}; it is an
   * {@link UnreachableRedisError} when the client keeps trying.
   */
  async start(trial: () => Promise<void>): Promise<void> {
    const { client } = this;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onError = (error: unknown) => {
      if (isPermanent(error)) reject(error);
    };
    const cancelTimer = this.time.after(START_MAX_MS, () => reject(this.#cause ?? new Error('no answer')));
    client.on('error', onError).on('node error', onError).once('ready', resolve);
    client.connect().catch((error: unknown) => {
      // Any other cause has arrived as an event.
      this.#cause ??= error;
    });
    try {
      await promise;
      await requireVersion(this.name, client);
      await requireAllKeys(client);
      await trial();
    } catch (error) {
      throw refusalOf(this.name, error);
    } finally {
      cancelTimer();
      client.off('error', onError).off('node error', onError).off('ready', resolve);
    }
  }

  /** Makes one call of the client. Rejects with a {@link RedisFailureError} within two `command_ms`. */
  async ask<Reply>(call: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    try {
      return await call(this.client);
    } catch (error) {
      const isAnswer = error instanceof Error && error.name === 'ReplyError';
      if (!isAnswer) this.#fault_ms = this.time.now();
      const isOffline = this.client.status !== 'ready' || NOT_SENT.test(reasonOf(error));
      const cause = isOffline && !isAnswer ? (this.#cause ?? LOST) : error;
      throw new RedisFailureError(this.name, reasonOf(cause));
    }
  }

  /** Ends what is under way and disconnects. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** The plugin would wait for a client that is not ready, and break on one that is refused. */
  async #adopt(): Promise<void> {
    const host = fastify({ pluginTimeout: 0 });
    await host.register(fastifyRedis, { client: this.client, closeClient: true });
    this.#host = host;
  }

  /** The client gives up for good, for example when it is disconnected in the middle of an attempt to connect. */
  #revive(): void {
    const again = () => {
      if (this.#closing === undefined) this.client.connect().catch(ignore);
    };
    setTimeout(again, REVIVAL_MS).unref();
  }

  async #close(): Promise<void> {
    try {
      await this.#host?.close();
    } catch {
      // There is no leave to be taken of a server that is gone.
    }
    this.client.disconnect();
  }

  #fail(error: unknown): void {
    this.#cause = error;
    this.#fault_ms = this.time.now();
  }
}

const ignore = () => {};
