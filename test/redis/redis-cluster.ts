import { vi } from 'vitest';
import { freePort } from './free-port.ts';
import { RedisServer } from './redis-server.ts';

const SLOTS = 16_384;
const MASTERS = 3;
const SLOTS_PER_NODE = Math.ceil(SLOTS / MASTERS);
const FORMATION_MAX_MS = 15_000;

/** Masters that share all slots. */
export class RedisCluster {
  readonly nodes: readonly RedisServer[];

  private constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes;
  }

  static async start(binary: string, more: readonly string[] = []): Promise<RedisCluster> {
    const nodes: RedisServer[] = [];
    const buses: number[] = [];
    for (let i = 0; i < MASTERS; i++) {
      const bus = await freePort();
      const configuration = [
        'cluster-enabled yes',
        'cluster-node-timeout 1000',
        `cluster-port ${bus}`,
        ...more,
      ];
      nodes.push(await RedisServer.start({ binary, configuration }));
      buses.push(bus);
    }
    const cluster = new RedisCluster(nodes);
    await cluster.#form(buses);
    return cluster;
  }

  get url(): string {
    return `redis+cluster://${this.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
  }

  async nodeOf(key: string): Promise<RedisServer> {
    const slot = Number(await this.nodes[0]?.admin.cluster('KEYSLOT', key));
    return this.nodes[Math.floor(slot / SLOTS_PER_NODE)] as RedisServer;
  }

  async flush(): Promise<void> {
    await Promise.all(this.nodes.map(({ admin }) => admin.flushall()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async #form(buses: readonly number[]): Promise<void> {
    for (const [position, { admin }] of this.nodes.entries()) {
      const first = position * SLOTS_PER_NODE;
      await admin.cluster('ADDSLOTSRANGE', first, Math.min(first + SLOTS_PER_NODE, SLOTS) - 1);
      await admin.cluster('SET-CONFIG-EPOCH', position + 1);
    }
    for (const [position, { port }] of this.nodes.entries()) {
      if (position > 0)
        await this.nodes[0]?.admin.call('CLUSTER', 'MEET', '127.0.0.1', port, buses[position] ?? 0);
    }
    await vi.waitFor(
      async () => {
        for (const { admin } of this.nodes) {
          const state = await admin.cluster('INFO');
          if (!state.includes('cluster_state:ok') || !state.includes(`cluster_known_nodes:${MASTERS}`))
            throw new Error(`the cluster has not formed:\n${state}`);
        }
      },
      { timeout: FORMATION_MAX_MS, interval: 50 },
    );
  }
}
