import type { Result } from 'ioredis';

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

/** KEYS: log. ARGV: last id, id of the opening, token, ttl_ms or 0, then the id and the line of each new entry. */
const WRITE = `
local last = ${last}
local opening = ${entry('ARGV[2]')}
local token = opening and opening[2][4] or ''
if not last or last[1] ~= ARGV[1] or token ~= ARGV[3] then
  return {last and last[1] or '', token}
end
for i = 5, #ARGV, 2 do
  redis.call('XADD', KEYS[1], ARGV[i], 'l', ARGV[i + 1])
end
if ARGV[4] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
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
  holdfastWrite: { lua: WRITE, numberOfKeys: 1 },
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
    holdfastWrite(log: string, ...args: string[]): Result<Mismatch | null, Context>;
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
