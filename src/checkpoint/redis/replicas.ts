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
  /** How long a dead replica's keys are kept. */
  readonly keep_ms: number;
  /** Redis no longer accepts signs of life. Called once per outage. */
  onOutage(error: Error): void;
  onRecovery(outage_ms: number): void;
  /** Called after every sign of life. */
  onBeat(): void;
}

/**
 * Tracks live replicas with one key each, which Redis expires by its own clock, so that the replicas' clocks don't
 * matter.
 */
export class RedisReplicas {
  /** Identifies this replica until it restarts. */
  readonly id = randomBytes(REPLICA_ID_BYTES).toString('base64url');
  readonly #options: RedisReplicasOptions;
  #cancelTimer = () => {};
  #beating: Promise<void> | undefined;
  #outage_since_ms: number | undefined;

  constructor(options: RedisReplicasOptions) {
    this.#options = options;
  }

  /** Starts giving signs of life. `fault`: why Redis doesn't accept them yet. */
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

  /** Gives a sign of life. Rejects if Redis doesn't accept it. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  /** Stops the signs of life. This replica's runs count as lost from then on. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    await this.#beating?.catch(ignore);
    await this.#options.connection.ask((client) => client.del(aliveKey(this.id)));
  }

  async holder(replica: string): Promise<Holder> {
    const { connection, lease_ms } = this.#options;
    const left_ms = await connection.ask((client) => client.pttl(aliveKey(replica)));
    if (left_ms >= 0) return { state: 'alive', silent_ms: Math.max(lease_ms - left_ms, 0) };
    // After an outage of Redis or of this replica, others may not have had time to reconnect and renew their keys.
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
      // Renewed every time, because Redis may have lost them.
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
      // A full Redis rejects new values but still extends existing keys.
      if (error instanceof RedisFailureError && error.reason.startsWith('OOM'))
        await connection.ask((client) => client.pexpire(key, lease_ms));
      throw error;
    }
  }
}

const ignore = () => {};
