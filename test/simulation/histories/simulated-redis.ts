import { END_NUMBER } from '../../../src/checkpoint/redis/log.ts';
import type { Mismatch, RawEntry } from '../../../src/checkpoint/redis/scripts.ts';

interface Entry {
  readonly id: string;
  readonly epoch: number;
  /** Infinite for the highest id that a stream can hold. */
  readonly number: number;
  readonly raw: RawEntry;
}

type Value = readonly Entry[] | ReadonlySet<string> | string;

interface Kept {
  readonly value: Value;
  readonly expires_ms: number;
}

const NEVER = Number.POSITIVE_INFINITY;

/** Redis's error for an id that a stream refuses. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

const split = (id: string): { readonly epoch: number; readonly number: number } => {
  const [epoch = '', number = ''] = id.split('-');
  return { epoch: Number(epoch), number: number === END_NUMBER ? NEVER : Number(number) };
};

type Place = Pick<Entry, 'epoch' | 'number'>;

const compare = (one: Place, other: Place): number =>
  one.epoch - other.epoch || (one.number === other.number ? 0 : one.number - other.number);

/**
 * A Redis server with the store's commands and scripts, each atomic. Values are immutable, so that any earlier state
 * can return: a restart from a snapshot, or a failover to a lagging replica.
 */
export class SimulatedRedis {
  readonly #now_ms: () => number;
  #keys = new Map<string, Kept>();
  /** The server is unreachable. */
  isDown: boolean = false;
  /** The number of its starts. */
  start = 1;
  /** When acknowledged data were lost. */
  readonly losses_ms: number[] = [];

  constructor(now_ms: () => number) {
    this.#now_ms = now_ms;
  }

  /** The state for a later {@link restore}. */
  snapshot(): ReadonlyMap<string, Kept> {
    return new Map(this.#keys);
  }

  restore(snapshot: ReadonlyMap<string, Kept>): void {
    this.#keys = new Map(snapshot);
    this.losses_ms.push(this.#now_ms());
  }

  /** Whether the log contains more than openings and an end. */
  hasRecords(log: string): boolean {
    return this.#stream(log).some(({ number }) => number > 0 && number < NEVER);
  }

  readonly commands = {
    holdfastOpen: (log: string, ...args: string[]): Mismatch | null => {
      const [last = '', opening_id = '', line = '', token = '', ttl_ms = ''] = args;
      const entries = this.#stream(log);
      const actual = entries.at(-1)?.id ?? '';
      if (actual !== last) return [actual, tokenOf(entries, opening_id)];
      this.#add(log, [entryOf(opening_id, line, token)]);
      this.#expire(log, Number(ttl_ms));
      return null;
    },

    holdfastWrite: (count: number, ...logs_and_args: string[]): (Mismatch | null)[] | null => {
      const args = logs_and_args.slice(count);
      const results = logs_and_args.slice(0, count).map((log) => {
        const [last = '', token = '', added = '', ttl_ms = ''] = args.shift()?.split(' ') ?? [];
        return this.#write(log, last, token, args.splice(0, Number(added)), Number(ttl_ms));
      });
      return results.some((result) => result !== null) ? results : null;
    },

    holdfastKeep: (log: string, epoch: string, token: string, ttl_ms: string): null => {
      const entries = this.#stream(log);
      const last = entries.at(-1);
      const isHeld = last?.epoch === Number(epoch) && last.number !== NEVER;
      if (isHeld && tokenOf(entries, `${epoch}-0`) === token) this.#expire(log, Number(ttl_ms));
      return null;
    },

    holdfastTailBuffer: (log: string, number: string, count: string) => {
      const entries = this.#stream(log);
      const last = entries.at(-1);
      if (!last) return null;
      const from = { epoch: last.epoch, number: number === END_NUMBER ? NEVER : Number(number) };
      const opening = entries.find(({ id }) => id === `${last.epoch}-0`);
      const tail = entries.filter((entry) => entry.epoch === last.epoch && compare(entry, from) >= 0);
      const found = tail.slice(0, Number(count)).map(({ raw }) => raw);
      return [Buffer.from(last.id), opening?.raw ?? [], found] as const;
    },

    holdfastEnter: (): null => null,

    holdfastReplaceBuffer: (key: string, expected: Buffer, text: string, ttl_ms: string): Buffer | null => {
      const kept = this.#string(key);
      if (kept !== null && kept !== expected.toString()) return Buffer.from(kept);
      this.#set(key, text, Number(ttl_ms));
      return null;
    },

    xrangeBuffer: (
      key: string,
      start: string,
      _end: '+',
      _count: 'COUNT',
      count: number,
    ): readonly RawEntry[] => {
      const entries = this.#stream(key);
      const from = start === '-' ? 0 : entries.findLastIndex(({ id }) => id === start.slice(1)) + 1;
      if (start !== '-' && from === 0) {
        const place = split(start.slice(1));
        return entries
          .filter((entry) => compare(entry, place) > 0)
          .slice(0, count)
          .map(({ raw }) => raw);
      }
      return entries.slice(from, from + count).map(({ raw }) => raw);
    },

    set: (key: string, text: string, _px: 'PX', ttl_ms: number): 'OK' => {
      this.#set(key, text, ttl_ms);
      return 'OK';
    },

    /** SET … NX GET. */
    setBuffer: (key: string, text: string, _px: 'PX', ttl_ms: number): Buffer | null => {
      const kept = this.#string(key);
      if (kept !== null) return Buffer.from(kept);
      this.#set(key, text, ttl_ms);
      return null;
    },

    mget: (keys: readonly string[]): (string | null)[] => keys.map((key) => this.#string(key)),

    getdel: (key: string): string | null => {
      const kept = this.#string(key);
      this.#keys.delete(key);
      return kept;
    },

    del: (key: string): number => Number(this.#keys.delete(key)),
    unlink: (key: string): number => Number(this.#keys.delete(key)),
    exists: (key: string): number => Number(this.#get(key) !== undefined),

    pexpire: (key: string, ttl_ms: number): number => {
      if (!this.#get(key)) return 0;
      this.#expire(key, ttl_ms);
      return 1;
    },

    pttl: (key: string): number => {
      const kept = this.#get(key);
      if (!kept) return -2;
      return kept.expires_ms === NEVER ? -1 : kept.expires_ms - this.#now_ms();
    },

    sadd: (key: string, member: string): number => {
      this.#replace(key, new Set([...this.#set_of(key), member]));
      return 1;
    },

    srem: (key: string, member: string): number => {
      const rest = new Set([...this.#set_of(key)].filter((each) => each !== member));
      if (rest.size === 0) this.#keys.delete(key);
      else this.#replace(key, rest);
      return 1;
    },

    scard: (key: string): number => this.#set_of(key).size,
    smembers: (key: string): string[] => [...this.#set_of(key)],
    sscan: (key: string): [string, string[]] => ['0', [...this.#set_of(key)]],
    zrange: (): string[] => [],
    zrem: (): number => 0,
  };

  /** Writes one log of `holdfastWrite`. Each element of `added` is the id of an entry, a space and its line. */
  #write(
    log: string,
    last: string,
    token: string,
    added: readonly string[],
    ttl_ms: number,
  ): Mismatch | null {
    const entries = this.#stream(log);
    const actual = entries.at(-1)?.id ?? '';
    const opened = tokenOf(entries, `${split(last).epoch}-0`);
    if (actual === '' || actual !== last || opened !== token) return [actual, opened];
    this.#add(
      log,
      added.map((each) => {
        const space = each.indexOf(' ');
        return entryOf(each.slice(0, space), each.slice(space + 1));
      }),
    );
    if (ttl_ms > 0) this.#expire(log, ttl_ms);
    return null;
  }

  #get(key: string): Kept | undefined {
    const kept = this.#keys.get(key);
    if (!kept || kept.expires_ms > this.#now_ms()) return kept;
    this.#keys.delete(key);
    return undefined;
  }

  #stream(key: string): readonly Entry[] {
    return (this.#get(key)?.value as readonly Entry[] | undefined) ?? [];
  }

  #string(key: string): string | null {
    return (this.#get(key)?.value as string | undefined) ?? null;
  }

  #set_of(key: string): ReadonlySet<string> {
    return (this.#get(key)?.value as ReadonlySet<string> | undefined) ?? new Set();
  }

  #set(key: string, text: string, ttl_ms: number): void {
    this.#keys.set(key, { value: text, expires_ms: this.#now_ms() + ttl_ms });
  }

  /** Replaces the value and keeps its expiry. */
  #replace(key: string, value: Value): void {
    this.#keys.set(key, { value, expires_ms: this.#get(key)?.expires_ms ?? NEVER });
  }

  #expire(key: string, ttl_ms: number): void {
    const kept = this.#get(key);
    if (kept) this.#keys.set(key, { ...kept, expires_ms: this.#now_ms() + ttl_ms });
  }

  #add(key: string, added: readonly Entry[]): void {
    const entries = this.#stream(key);
    let last = entries.at(-1);
    for (const entry of added) {
      if (last && compare(entry, last) <= 0)
        throw new ReplyError(
          'ERR The ID specified in XADD is equal or smaller than the target stream top item',
        );
      last = entry;
    }
    this.#replace(key, [...entries, ...added]);
  }
}

const tokenOf = (entries: readonly Entry[], opening_id: string): string =>
  entries.find(({ id }) => id === opening_id)?.raw[1][3]?.toString() ?? '';

function entryOf(id: string, line: string, token?: string): Entry {
  const fields = [LINE, Buffer.from(line), ...(token === undefined ? [] : [TOKEN, Buffer.from(token)])];
  return { id, ...split(id), raw: [Buffer.from(id), fields] };
}

const LINE = Buffer.from('l');
const TOKEN = Buffer.from('t');
