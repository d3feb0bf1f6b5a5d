import { expect, onTestFinished, vi } from 'vitest';
import { ownerOf } from '../../src/checkpoint/owner.ts';
import type { RunId, Store, StoredRun } from '../../src/checkpoint/store.ts';
import { systemTime } from '../../src/lib/time.ts';
import { openStore } from '../../src/server/open-store.ts';
import { RedisSentinel } from '../redis/redis-sentinel.ts';
import { Deployment } from './deployment.ts';
import { CREDENTIAL } from './talk.ts';

const SECRET = 's'.repeat(32);
const TTL_S = 3600;
/** Short enough for a test, long enough for a busy machine to renew it. */
const LEASE_MS = 1000;
/** The least number of events by which the promoted Redis is behind. */
const LOST_EVENTS = 20;
/** Allows for every change in Redis, even on a busy machine. */
const CHANGE_MAX_MS = 60_000;

const ignore = () => {};

/** Holdfast replicas that share a Redis with a replica and a sentinel, and a store to inspect it with. */
export class FailoverDeployment {
  readonly holdfast: Deployment;
  readonly #redis: RedisSentinel;
  readonly #store: Store;

  private constructor(holdfast: Deployment, redis: RedisSentinel, store: Store) {
    this.holdfast = holdfast;
    this.#redis = redis;
    this.#store = store;
  }

  /** Closed when the test ends. `binary` is the path of Redis. */
  static async start(binary: string, replicas = 2): Promise<FailoverDeployment> {
    const redis = await RedisSentinel.start(binary);
    onTestFinished(() => redis.stop());
    const store = await openStore(redis.url, {
      time: systemTime,
      ttl_s: TTL_S,
      lease_ms: LEASE_MS,
      sealing_keys: [],
      secret: SECRET,
      on_unreachable: 'fail',
      onError: (error) => expect.unreachable(error.message),
      onOutage: ignore,
      onRecovery: ignore,
    });
    onTestFinished(() => store.close());
    // Stop the replica from rewriting lost events, as happens to an answer larger than what it keeps in memory.
    const kept = { rewritable_bytes: 0 };
    const checkpoint = { store: redis.url, lease_ms: LEASE_MS, durability: 'interval', ...kept };
    const holdfast = await Deployment.start({ replicas, checkpoint, secret: SECRET });
    onTestFinished(() => holdfast.close());
    return new FailoverDeployment(holdfast, redis, store);
  }

  /** The stored state of a run. */
  async stored(run: string): Promise<StoredRun> {
    const stored = await this.#store.read(run as RunId, ownerOf(SECRET, CREDENTIAL), 0);
    if (!stored) throw new Error(`${run} is not stored`);
    return stored;
  }

  /** The stored state of a run once it is over, which may be a moment after its client heard so. */
  async sealed(run: string): Promise<StoredRun> {
    return vi.waitFor(
      async () => {
        const stored = await this.stored(run);
        expect(stored.status).not.toBe('running');
        return stored;
      },
      { timeout: CHANGE_MAX_MS, interval: 20 },
    );
  }

  /**
   * Kills the master and promotes a replica that has the run only as of this call, although at least `LOST_EVENTS` more
   * events have since been stored, and `until` holds. Resolves once every Holdfast replica uses the new master, with
   * the number of events that the new master has.
   */
  async failOver(run: string, until: (stored: StoredRun) => boolean = () => true): Promise<number> {
    await this.#redis.synchronize();
    let lost = 0;
    await this.#redis.loseWhat(async () => {
      const { seq } = await this.stored(run);
      await vi.waitFor(
        async () => {
          const stored = await this.stored(run);
          expect(stored.seq).toBeGreaterThanOrEqual(seq + LOST_EVENTS);
          expect(until(stored)).toBe(true);
          lost = stored.seq;
        },
        { timeout: CHANGE_MAX_MS, interval: 10 },
      );
    });
    await this.#works();
    const { seq } = await this.stored(run);
    expect(seq).toBeGreaterThan(0);
    expect(seq).toBeLessThanOrEqual(lost - LOST_EVENTS);
    return seq;
  }

  async #works(): Promise<void> {
    const urls = this.holdfast.replicas.map(({ adminUrl }) => `${adminUrl}/readyz`);
    await vi.waitFor(
      async () => {
        await this.#store.check();
        for (const url of urls) expect((await fetch(url)).status).toBe(200);
      },
      { timeout: CHANGE_MAX_MS, interval: 20 },
    );
  }
}
