import { Deployment } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { Haproxy, type Slot } from './haproxy.ts';
import { quietPort } from './quiet-port.ts';

const SLOTS = 4;

export interface StageOptions {
  /** Paths of the programs. */
  readonly redis: string;
  readonly haproxy: string;
  readonly drain_ms: number;
  readonly drain_delay_ms: number;
  readonly check_interval_ms: number;
  readonly salvage_after_ms: number;
}

/** Four slots for replicas behind HAProxy, with one Redis. */
export class Stage {
  readonly slots: readonly Slot[];
  readonly deployment: Deployment;
  readonly haproxy: Haproxy;
  readonly redis: RedisServer;

  private constructor(slots: readonly Slot[], deployment: Deployment, haproxy: Haproxy, redis: RedisServer) {
    this.slots = slots;
    this.deployment = deployment;
    this.haproxy = haproxy;
    this.redis = redis;
  }

  /** Sets up everything but the replicas. */
  static async set(options: StageOptions): Promise<Stage> {
    const { drain_ms, drain_delay_ms, check_interval_ms, salvage_after_ms } = options;
    const slots: Slot[] = [];
    for (let number = 1; number <= SLOTS; number++)
      slots.push({ name: `holdfast-${number}`, port: await quietPort(), admin_port: await quietPort() });
    // Start HAProxy first: if it fails to start, it cleans up after itself and nothing else is running yet.
    const haproxy = await Haproxy.start({ binary: options.haproxy, slots, check_interval_ms });
    const redis = await RedisServer.start({ binary: options.redis });
    const deployment = await Deployment.start({
      replicas: 0,
      secret: 'the secret that all replicas share',
      checkpoint: { store: redis.url },
      recovery: { backoff_ms: 500, backoff_max_ms: 8000 },
      resume: { salvage_after_ms },
      limits: { drain_ms, drain_delay_ms },
    });
    // HAProxy considers slots occupied until its first check.
    await Promise.all(slots.map((slot) => haproxy.untilDown(slot)));
    return new Stage(slots, deployment, haproxy, redis);
  }

  /** Starts a replica in an empty slot. Resolves once the balancer considers it ready. */
  async start(slot: Slot): Promise<HoldfastProcess> {
    const { port, admin_port } = slot;
    const replica = await this.deployment.addReplica({ port, admin_port });
    await this.haproxy.untilUp(slot);
    return replica;
  }

  /** Stops everything. Rejects if a replica logged complaints. */
  async clear(): Promise<void> {
    try {
      await this.deployment.close();
    } finally {
      await Promise.all([this.haproxy.close(), this.redis.stop()]);
    }
  }
}
