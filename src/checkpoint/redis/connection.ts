import fastifyRedis from '@fastify/redis';
import fastify, { type FastifyInstance } from 'fastify';
import { systemTime, type Time } from '../../lib/time.ts';
import type { RedisAddress } from './address.ts';
import { createRedisClient, type RedisClient } from './client.ts';
import { isPermanent, RedisFailureError, reasonOf, refusalOf } from './refusal.ts';
import { requireAllKeys, requireVersion } from './server-checks.ts';

/** How long the start waits for Redis. */
const START_MAX_MS = 5000;
/** Delay before restarting a client that has given up. */
const REVIVAL_MS = 1000;
/** The client's error for a command it didn't send. */
const NOT_SENT = /enableOfflineQueue/;
const LOST = new Error('the connection was lost');

export interface RedisConnectionOptions {
  /** Default {@link systemTime}. */
  readonly time?: Time | undefined;
  /** See {@link createRedisClient}. */
  readonly command_ms?: number | undefined;
  /** Replaces the connection's own client. */
  readonly client?: RedisClient | undefined;
}

/**
 * A store's client, from its first connection attempt until it is closed. Once connected, it belongs to a dedicated
 * Fastify instance, because stores are opened before the server exists and closed after it.
 */
export class RedisConnection {
  readonly client: RedisClient;
  readonly time: Time;
  readonly #address: RedisAddress;
  #host: FastifyInstance | undefined;
  /** Why there is no connection; errors of commands only say that there is none. */
  #cause: unknown;
  #fault_ms = Number.NEGATIVE_INFINITY;
  #closing: Promise<void> | undefined;

  constructor(address: RedisAddress, { time = systemTime, command_ms, client }: RedisConnectionOptions = {}) {
    this.#address = address;
    this.time = time;
    this.client = client ?? createRedisClient(address, command_ms);
    // Errors of sentinels and cluster nodes say more about a failure than the error that follows.
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

  /** The last time a fault kept this replica from hearing from others; -Infinity if none has. */
  get fault_ms(): number {
    return this.#fault_ms;
  }

  /**
   * Connects and runs `trial`. Rejects with a {@link StoreConfigurationError}, or with its subclass {@link
   * UnreachableRedisError} if the client keeps trying.
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
      // Any other cause has already arrived as an event.
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

  /** Makes one client call. Rejects with a {@link RedisFailureError} within two `command_ms`. */
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

  /** Finishes calls in progress and disconnects. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /**
   * Called only once connected: the plugin would wait for a client that isn't ready and fail with one that is refused.
   */
  async #adopt(): Promise<void> {
    const host = fastify({ pluginTimeout: 0 });
    await host.register(fastifyRedis, { client: this.client, closeClient: true });
    this.#host = host;
  }

  /** Reconnects a client that gave up for good, for example when disconnected in the middle of a connection attempt. */
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
      // QUIT fails if the server is gone.
    }
    this.client.disconnect();
  }

  #fail(error: unknown): void {
    this.#cause = error;
    this.#fault_ms = this.time.now();
  }
}

const ignore = () => {};
