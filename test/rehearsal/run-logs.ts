import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { logKey } from '../../src/checkpoint/redis/keys.ts';
import { parseId } from '../../src/checkpoint/redis/log.ts';
import type { RunId } from '../../src/checkpoint/store.ts';
import { checkLog } from '../chaos/log-check.ts';

const POLL_MS = 200;
const SCAN_COUNT = 1000;

export interface LogsFound {
  readonly runs: number;
  /** Runs that had more than one holder. */
  readonly moved: number;
  /** Evidence that two replicas wrote to one run, and each run without an end. */
  readonly faults: readonly string[];
}

/** Checks the journals of all runs in Redis once all have ended, or after `limit_ms`. */
export async function checkLogs(redis: Redis, limit_ms: number): Promise<LogsFound> {
  const deadline_ms = performance.now() + limit_ms;
  let open = await unended(redis, await runsIn(redis));
  while (open.length > 0 && performance.now() < deadline_ms) {
    await pause(POLL_MS);
    open = await unended(redis, open);
  }
  const runs = await runsIn(redis);
  const faults = open.map((run) => `${run} has no end`);
  let moved = 0;
  for (const run of runs) {
    const { epochs, violations } = await checkLog(redis, run);
    if (epochs > 1) moved++;
    faults.push(...violations.map((violation) => `${run}: ${violation}`));
  }
  return { runs: runs.length, moved, faults };
}

async function unended(redis: Redis, runs: readonly RunId[]): Promise<RunId[]> {
  const open: RunId[] = [];
  for (const run of runs) {
    const [last] = await redis.xrevrange(logKey(run), '+', '-', 'COUNT', 1);
    if (!last || parseId(last[0]).kind !== 'end') open.push(run);
  }
  return open;
}

async function runsIn(redis: Redis): Promise<RunId[]> {
  const runs = new Set<RunId>();
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', 'holdfast:{run_*}:log', 'COUNT', SCAN_COUNT);
    for (const key of keys) runs.add(key.slice('holdfast:{'.length, -'}:log'.length) as RunId);
    cursor = next;
  } while (cursor !== '0');
  return [...runs];
}
