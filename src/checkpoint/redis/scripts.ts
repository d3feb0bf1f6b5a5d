import type { Result } from 'ioredis';
import type { RedisClient } from './client.ts';
import type { RedisConnection } from './connection.ts';
import { GatheredCalls } from './gathered-calls.ts';
import { END_NUMBER } from './log.ts';
import { RedisFailureError } from './refusal.ts';

/*
 * Each script is one atomic step on one run's log, one note or one owner's index. The caller passes what it expects to
 * be the last entry; if that is wrong, the script writes nothing and returns the actual one.
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
 * KEYS: logs. ARGV, for each log: `<last id> <token> <number of new entries> <ttl_ms, or 0 to leave it unchanged>`,
 * then `<id> <line>` for each new entry. A problem with one log doesn't prevent writes to the others. Returns false if
 * all were written. Otherwise returns for each log: false, the reason nothing was written, or a one-element list with
 * an error.
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

/**
 * KEYS: log. ARGV: epoch, token, ttl_ms. Renews the expiry only if this epoch is the latest and the run hasn't ended.
 */
const KEEP = `
local opening = ${entry(`ARGV[1] .. '-0'`)}
if not opening or opening[2][4] ~= ARGV[2] then return false end
local epoch, number = string.match(${last}[1], '^(%d+)-(%d+)$')
if epoch == ARGV[1] and number ~= '${END_NUMBER}' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return false`;

/** KEYS: log. ARGV: the smallest number of the wanted entries in the latest epoch, their maximum count. */
const TAIL = `
local last = ${last}
if not last then return false end
local epoch = string.match(last[1], '^%d+')
local opening = ${entry(`epoch .. '-0'`)}
return {last[1], opening or {}, redis.call('XRANGE', KEYS[1], epoch .. '-' .. ARGV[1], '+', 'COUNT', ARGV[2])}`;

/** KEYS: note. ARGV: expected value if the note exists, new value, ttl_ms. */
const REPLACE = `
local kept = redis.call('GET', KEYS[1])
if kept and kept ~= ARGV[1] then return kept end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return false`;

/**
 * KEYS: index. ARGV: the run's start time, entry, time before which entries are dropped, -1 - maximum count, ttl_ms.
 */
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

/** Nothing was written: the actual last entry and the token of the actual opening. Empty if absent. */
export type Mismatch = readonly [last_id: string, token: string];

/** An id, and alternating names and values of fields. */
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
    /** Null if the note was written; otherwise its current value. */
    holdfastReplaceBuffer(
      note: string,
      expected: Buffer,
      text: string,
      ttl_ms: string,
    ): Result<Buffer | null, Context>;
  }
}

export interface LogWrite {
  readonly log: string;
  /** The expected last entry, and the token of its epoch's opening. */
  readonly last_id: string;
  readonly token: string;
  /** Each new entry as `<id> <line>`. */
  readonly entries: readonly string[];
  /** The log's new expiry; 0 leaves it unchanged. */
  readonly kept_ms: number;
}

/** Neither if it was written. */
type WriteResult = Mismatch | readonly [reason: string] | null | undefined;

/** Maximum number of logs per call. */
const LOGS_PER_CALL = 64;

/** Writes to logs. Writes requested in the same turn, such as those of all runs stored at one tick, share calls. */
export class LogWrites {
  readonly #connection: RedisConnection;
  readonly #calls: GatheredCalls<LogWrite, WriteResult>;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
    this.#calls = new GatheredCalls({ connection, per_call: LOGS_PER_CALL, call: writeLogs });
  }

  /** Resolves with undefined if it was written. */
  async write(write: LogWrite): Promise<Mismatch | undefined> {
    const result = await this.#calls.ask(write);
    if (result?.length === 1) throw new RedisFailureError(this.#connection.name, result[0]);
    return result ?? undefined;
  }
}

async function writeLogs(client: RedisClient, writes: readonly LogWrite[]): Promise<readonly WriteResult[]> {
  const logs = writes.map(({ log }) => log);
  const args = writes.flatMap(({ last_id, token, entries, kept_ms }) => [
    `${last_id} ${token} ${entries.length} ${kept_ms}`,
    ...entries,
  ]);
  return (await client.holdfastWrite(logs.length, ...logs, ...args)) ?? [];
}
