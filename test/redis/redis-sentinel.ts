import { vi } from 'vitest';
import { RedisServer } from './redis-server.ts';

const MASTER_NAME = 'main';
const REPLICATION_MAX_MS = 15_000;
const FAILOVER_MAX_MS = 30_000;

/** A master, its replica, and a sentinel that decides alone. */
export class RedisSentinel {
  readonly master: RedisServer;
  readonly replica: RedisServer;
  readonly #sentinel: RedisServer;

  private constructor(master: RedisServer, replica: RedisServer, sentinel: RedisServer) {
    this.master = master;
    this.replica = replica;
    this.#sentinel = sentinel;
  }

  static async start(binary: string): Promise<RedisSentinel> {
    const master = await RedisServer.start({ binary });
    const replica = await RedisServer.start({ binary });
    await follow(replica, master);
    const sentinel = await RedisServer.start({
      binary,
      words: ['--sentinel'],
      configuration: [
        `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${master.port} 1`,
        `sentinel down-after-milliseconds ${MASTER_NAME} 500`,
        `sentinel failover-timeout ${MASTER_NAME} 5000`,
      ],
    });
    return new RedisSentinel(master, replica, sentinel);
  }

  get url(): string {
    return `redis+sentinel://127.0.0.1:${this.#sentinel.port}/${MASTER_NAME}`;
  }

  /** Resolves once the replica has everything that the master has. */
  async synchronize(): Promise<void> {
    const { admin } = this.master;
    // WAIT covers only writes on the same connection.
    await admin.set('synchronized', 'yes');
    if ((await admin.wait(1, REPLICATION_MAX_MS)) < 1) throw new Error('the replica is behind');
  }

  /** Kills the master before its replica receives what `happens` writes, and waits for the replica's promotion. */
  async loseWhat(happens: () => Promise<void>): Promise<void> {
    this.replica.pause();
    await this.master.admin.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await happens();
    await this.master.kill();
    this.replica.resume();
    await vi.waitFor(
      async () => {
        const facts = (await this.#sentinel.admin.call('SENTINEL', 'MASTER', MASTER_NAME)) as string[];
        if (facts[facts.indexOf('port') + 1] !== String(this.replica.port))
          throw new Error('no failover yet');
      },
      { timeout: FAILOVER_MAX_MS, interval: 50 },
    );
  }

  async stop(): Promise<void> {
    for (const server of [this.#sentinel, this.replica, this.master]) await server.stop();
  }
}

/** Resolves once `replica` has everything that `master` has. */
export async function follow(replica: RedisServer, master: RedisServer): Promise<void> {
  await replica.admin.replicaof('127.0.0.1', master.port);
  await vi.waitFor(
    async () => {
      if (!/^master_link_status:up/m.test(await replica.admin.info('replication')))
        throw new Error('not in step');
    },
    { timeout: REPLICATION_MAX_MS, interval: 20 },
  );
}
