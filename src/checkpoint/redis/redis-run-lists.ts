import type { RunId } from '../store.ts';
import type { RedisConnection } from './redis-connection.ts';
import { RELEASED, REPLICAS_KEY, runsKey } from './redis-keys.ts';

/** What one step through a list asks for. */
const STEP = '256';

/** One run in the list of one replica, or of what was released. */
export interface ListedRun {
  readonly list: string;
  readonly run: RunId;
  readonly epoch: number;
}

/**
 * Which runs may have become orphans, so that nobody has to look through all runs there are. A run is listed before
 * it is held and struck off after it is let go, so what is listed has to be looked at, and nothing else has.
 */
export class RedisRunLists {
  readonly #connection: RedisConnection;
  readonly #keep_ms: number;

  /** `keep_ms`: how long a list is kept that nothing is added to. */
  constructor(connection: RedisConnection, keep_ms: number) {
    this.#connection = connection;
    this.#keep_ms = keep_ms;
  }

  async add({ list, run, epoch }: ListedRun): Promise<void> {
    const key = runsKey(list);
    await Promise.all([
      this.#connection.ask((client) => client.sadd(key, `${run}:${epoch}`)),
      this.#connection.ask((client) => client.pexpire(key, this.#keep_ms)),
    ]);
  }

  async remove({ list, run, epoch }: ListedRun): Promise<void> {
    await this.#connection.ask((client) => client.srem(runsKey(list), `${run}:${epoch}`));
  }

  /** Runs that were released and runs of replicas that are lost, step by step. */
  async *unheld(isLost: (replica: string) => Promise<boolean>): AsyncGenerator<readonly ListedRun[]> {
    yield* this.#listed(RELEASED);
    for (const replica of await this.#connection.ask((client) => client.smembers(REPLICAS_KEY))) {
      if (!(await isLost(replica))) continue;
      yield* this.#listed(replica);
      await this.#forget(replica);
    }
  }

  async *#listed(list: string): AsyncGenerator<readonly ListedRun[]> {
    let cursor = '0';
    do {
      const [next, members] = await this.#connection.ask((client) =>
        client.sscan(runsKey(list), cursor, 'COUNT', STEP),
      );
      yield members.map((member) => parse(list, member));
      cursor = next;
    } while (cursor !== '0');
  }

  /** A replica that comes back enters itself again. */
  async #forget(replica: string): Promise<void> {
    const left = await this.#connection.ask((client) => client.exists(runsKey(replica)));
    if (left === 0) await this.#connection.ask((client) => client.srem(REPLICAS_KEY, replica));
  }
}

function parse(list: string, member: string): ListedRun {
  const colon = member.lastIndexOf(':');
  return { list, run: member.slice(0, colon) as RunId, epoch: Number(member.slice(colon + 1)) };
}
