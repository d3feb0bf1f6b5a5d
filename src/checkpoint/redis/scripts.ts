import { Cluster, type Result } from 'ioredis';
import type { RedisConnection } from './connection.ts';
import { END_NUMBER } from './log.ts';
import { RedisFailureError } from './refusal.ts';

/*
 * Each is one atomic step on the log of one run, on one note, or on the index of one owner. The caller passes the entry
 * that it takes for the last one; if it is mistaken, the script writes nothing and returns the actual one.
 */

const last = `redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]`;
const entry = (id: string) => `redis.call('XRANGE', KEYS[1], ${id}, ${id})[1]`;

/** KEYS: log. ARGV: last id or '', id of the opening, its line, token, ttl_ms. */
const OPEN = `
local last = ${last}
if (last and last[1] or '') ~= ARGV[1] then
  local opening = ${entry('ARGV[2]')}
  return {last and last[1] or '', opening and opening[2][4] or ''}
end
redis.call('XADD', KEYS[1], ARGV[2], 'l', ARGV[3], 't', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return false`;

/**
 * KEYS: logs. ARGV, for each of them: `<last id> <token> <number of new entries> <ttl_ms, or 0 for the one it has>`, then for
 * each new entry `<id> <line>`. What is wrong with one log does not keep the others from being written. Returns false
 * when all were, otherwise for each log false, why nothing was written, or in a list of one what went wrong.
 */
const WRITE = `
local function write(log, at, last_id, token, count, ttl_ms)
  local last = redis.pcall('XREVRANGE', log, '+', '-', 'COUNT', 1)
  if last.err then return last end
  local epoch = string.match(last_id, '^%d+')
  local opening = redis.call('XRANGE', log, epoch .. '-0', epoch .. '-0')[1]
  local found = opening and opening[2][4] or ''
  if not last[1] or last[1][1] ~= last_id or found ~= token then
    return {last[1] and last[1][1] or '', found}
  end
  for i = at + 1, at + count do
    local space = string.find(ARGV[i], ' ', 1, true)
    local id, line = string.sub(ARGV[i], 1, space - 1), string.sub(ARGV[i], space + 1)
    local added = redis.pcall('XADD', log, id, 'l', line)
    if type(added) == 'table' and added.err then return added end
  end
  if ttl_ms ~= '0' then redis.call('PEXPIRE', log, ttl_ms) end
  return false
end

local results, isAny, at = {}, false, 1
for k = 1, #KEYS do
  local last_id, token, count, ttl_ms = string.match(ARGV[at], '^(%S+) (%S+) (%d+) (%d+)$')
  local result = write(KEYS[k], at, last_id, token, tonumber(count), ttl_ms)
  if result and result.err then
    if not string.find(result.err, '^WRONGTYPE') and not string.find(result.err, '^ERR') then return result end
    result = {result.err}
  end
  results[k] = result
  isAny = isAny or result ~= false
  at = at + 1 + tonumber(count)
end
return isAny and results`;

/** KEYS: log. ARGV: epoch, token, ttl_ms. Keeps what is under way in this epoch, and nothing that has ended or was taken over. */
const KEEP = `
local opening = ${entry(`ARGV[1] .. '-0'`)}
if not opening or opening[2][4] ~= ARGV[2] then return false end
local epoch, number = string.match(${last}[1], '^(%d+)-(%d+)$')
if epoch == ARGV[1] and number ~= '${END_NUMBER}' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return false`;

/** KEYS: log. ARGV: smallest number of an entry of the latest epoch that is asked for, how many at most. */
const TAIL = `
local last = ${last}
if not last then return false end
local epoch = string.match(last[1], '^%d+')
local opening = ${entry(`epoch .. '-0'`)}
return {last[1], opening or {}, redis.call('XRANGE', KEYS[1], epoch .. '-' .. ARGV[1], '+', 'COUNT', ARGV[2])}`;

/** KEYS: note. ARGV: what it must be if there is one, what it is to be, ttl_ms. */
const REPLACE = `
local kept = redis.call('GET', KEYS[1])
if kept and kept ~= ARGV[1] then return kept end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return false`;

/** KEYS: index. ARGV: when the run began, entry, the time before which no run needs an entry, -1 - how many at most, ttl_ms. */
const ENTER = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])`;

export const REDIS_SCRIPTS = {
  holdfastOpen: { lua: OPEN, numberOfKeys: 1 },
  holdfastWrite: { lua: WRITE },
  holdfastKeep: { lua: KEEP, numberOfKeys: 1 },
  holdfastTail: { lua: TAIL, numberOfKeys: 1 },
  holdfastEnter: { lua: ENTER, numberOfKeys: 1 },
  holdfastReplace: { lua: REPLACE, numberOfKeys: 1 },
};

/** Nothing was written, because the last entry is this one, or the opening has this token. Empty for what is not there. */
export type Mismatch = readonly [last_id: string, token: string];

/** An id, and names and values of fields in turn. */
export type RawEntry = readonly [id: Buffer, fields: readonly Buffer[]];

declare module 'ioredis' {
  interface RedisCommander<Context> {
    holdfastOpen(log: string, ...args: string[]): Result<Mismatch | null, Context>;
    holdfastWrite(
      logs: number,
      ...logs_and_args: string[]
    ): Result<readonly (Mismatch | readonly [reason: string] | null)[] | null, Context>;
    holdfastKeep(log: string, ...args: string[]): Result<null, Context>;
    holdfastEnter(index: string, ...args: string[]): Result<null, Context>;
    holdfastTailBuffer(
      log: string,
      number: string,
      count: string,
    ): Result<
      readonly [last_id: Buffer, opening: RawEntry | readonly [], entries: readonly RawEntry[]] | null,
      Context
    >;
    /** Null when it was replaced, or else what the note is. */
    holdfastReplaceBuffer(
      note: string,
      expected: Buffer,
      text: string,
      ttl_ms: string,
    ): Result<Buffer | null, Context>;
  }
}

/** What is to be written to one log. */
export interface LogWrite {
  readonly log: string;
  /** The entry that it takes for the last one, and the token of the opening of its epoch. */
  readonly last_id: string;
  readonly token: string;
  /** Of each new entry the id, a space and the line. */
  readonly entries: readonly string[];
  /** How long the log is kept from now on; 0 where that does not change. */
  readonly kept_ms: number;
}

interface DueWrite extends PromiseWithResolvers<Mismatch | undefined> {
  readonly write: LogWrite;
}

/** How many logs one call writes at most: Redis does nothing else meanwhile. */
const LOGS_PER_CALL = 64;

/**
 * Writes to logs. All writes that are asked for in the same turn, as those of all runs that are stored at one tick, are
 * calls for up to 64 logs each. In a cluster, whose logs are on different servers, each is a call of its own.
 */
export class LogWrites {
  readonly #connection: RedisConnection;
  readonly #per_call: number;
  #due: DueWrite[] = [];

  constructor(connection: RedisConnection) {
    this.#connection = connection;
    this.#per_call = connection.client instanceof Cluster ? 1 : LOGS_PER_CALL;
  }

  /** Resolves with undefined when it was written. */
  write(write: LogWrite): Promise<Mismatch | undefined> {
    const due = { write, ...Promise.withResolvers<Mismatch | undefined>() };
    if (this.#due.length === 0) queueMicrotask(() => this.#send());
    this.#due.push(due);
    return due.promise;
  }

  #send(): void {
    const due = this.#due;
    this.#due = [];
    for (let start = 0; start < due.length; start += this.#per_call)
      void this.#call(due.slice(start, start + this.#per_call));
  }

  async #call(batch: readonly DueWrite[]): Promise<void> {
    const logs = batch.map(({ write }) => write.log);
    const args = batch.flatMap(({ write: { last_id, token, entries, kept_ms } }) => [
      `${last_id} ${token} ${entries.length} ${kept_ms}`,
      ...entries,
    ]);
    try {
      const results = await this.#connection.ask((client) =>
        client.holdfastWrite(logs.length, ...logs, ...args),
      );
      for (const [index, { resolve, reject }] of batch.entries()) {
        const result = results?.[index];
        if (result?.length === 1) reject(new RedisFailureError(this.#connection.name, result[0]));
        else resolve(result ?? undefined);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
