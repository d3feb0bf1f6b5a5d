import { randomBytes } from 'node:crypto';
import { BEATS_PER_LEASE, type Holder } from '../store.ts';
import { RECONNECT_WITHIN_MS } from './client.ts';
import type { RedisConnection } from './connection.ts';
import { aliveKey, replicasKey, runsKey } from './keys.ts';
import { RedisFailureError } from './refusal.ts';

const REPLICA_ID_BYTES = 16;

export interface RedisReplicasOptions {
  readonly connection: RedisConnection;
  readonly lease_ms: number;
  /** How long it is kept what a replica leaves when it dies. */
  readonly keep_ms: number;
  /** Redis does not take signs of life any more. Called once per outage. */
  onOutage(error: Error): void;
  onRecovery(outage_ms: number): void;
  /** After every sign of life. */
  onBeat(): void;
}

/**
 * Which replicas are alive: one key for each, which Redis expires by its own clock. The clocks of replicas do not matter.
 */
export class RedisReplicas {
  /** Of this replica, from this start on. */
  readonly id = randomBytes(REPLICA_ID_BYTES).toString('base64url');
  readonly #options: RedisReplicasOptions;
  #cancelTimer = () => {};
  #beating: Promise<void> | undefined;
  #outage_since_ms: number | undefined;

  constructor(options: RedisReplicasOptions) {
    this.#options = options;
  }

  /** Gives signs of life from now on. `fault`: why Redis does not take them yet. */
  start(fault?: Error): void {
    if (fault) this.#fail(fault);
    const beat = () => void this.beat().catch(ignore);
    const { connection, lease_ms } = this.#options;
    const wait = () => {
      this.#cancelTimer = connection.time.after(lease_ms / BEATS_PER_LEASE, () => {
        wait();
        beat();
      });
    };
    wait();
    connection.client.on('ready', beat);
  }

  /** Gives a sign of life. Rejects when Redis does not take it. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  /** The runs of this replica are lost from now on. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    await this.#beating?.catch(ignore);
    await this.#options.connection.ask((client) => client.del(aliveKey(this.id)));
  }

  async holder(replica: string): Promise<Holder> {
    const { connection, lease_ms } = this.#options;
    const left_ms = await connection.ask((client) => client.pttl(aliveKey(replica)));
    if (left_ms >= 0) return { state: 'alive', silent_ms: Math.max(lease_ms - left_ms, 0) };
    // Redis was away, or this replica was: others may not have had the time to connect and to renew their keys.
    return connection.time.now() - connection.fault_ms < lease_ms + RECONNECT_WITHIN_MS
      ? { state: 'alive', silent_ms: lease_ms }
      : { state: 'lost' };
  }

  async #beat(): Promise<void> {
    try {
      await this.#giveSign();
    } catch (error) {
      this.#fail(error as Error);
      throw error;
    }
    if (this.#outage_since_ms !== undefined) {
      this.#options.onRecovery(this.#options.connection.time.now() - this.#outage_since_ms);
      this.#outage_since_ms = undefined;
    }
    this.#options.onBeat();
  }

  #fail(error: Error): void {
    if (this.#outage_since_ms !== undefined) return;
    this.#outage_since_ms = this.#options.connection.time.now();
    this.#options.onOutage(error);
  }

  async #giveSign(): Promise<void> {
    const { connection, keep_ms } = this.#options;
    const steps = [
      this.#renew(),
      // Every time, because Redis may have lost them.
      connection.ask((client) => client.sadd(replicasKey(this.id), this.id)),
      connection.ask((client) => client.pexpire(replicasKey(this.id), keep_ms)),
      connection.ask((client) => client.pexpire(runsKey(this.id), keep_ms)),
    ];
    for (const step of await Promise.allSettled(steps)) if (step.status === 'rejected') throw step.reason;
  }

  async #renew(): Promise<void> {
    const { connection, lease_ms } = this.#options;
    const key = aliveKey(this.id);
    try {
      await connection.ask((client) => client.set(key, '', 'PX', lease_ms));
    } catch (error) {
      // A Redis that is full takes nothing more, but lets live on what it has.
      if (error instanceof RedisFailureError && error.reason.startsWith('OOM'))
        await connection.ask((client) => client.pexpire(key, lease_ms));
      throw error;
    }
  }
}

const ignore = () => {};
