import type { Redis } from 'ioredis';
import { parseId } from '../../src/checkpoint/redis/log.ts';

export interface LogFacts {
  readonly epochs: number;
  /** Evidence that two replicas wrote at once, or that entries are missing. */
  readonly violations: readonly string[];
}

interface OpeningLine {
  readonly epoch: number;
  readonly holder?: string;
  readonly base: number;
}

/**
 * Checks the log of a run directly in Redis, bypassing the store, so that a defect of the store can't hide in its own
 * reader.
 */
export async function checkLog(redis: Redis, run: string): Promise<LogFacts> {
  const entries = await redis.xrange(`holdfast:{${run}}:log`, '-', '+');
  const violations: string[] = [];
  const holders: (string | undefined)[] = [];
  let epoch = 0;
  let seq = -1;
  let ended = false;
  for (const [id, fields] of entries) {
    const entry = parseId(id);
    if (ended) violations.push(`${id} comes after the end`);
    if (entry.kind === 'opening') {
      const opening = JSON.parse(lineOf(fields)) as OpeningLine;
      if (entry.epoch !== epoch + 1) violations.push(`epoch ${entry.epoch} follows epoch ${epoch}`);
      if (opening.base !== seq)
        violations.push(`epoch ${entry.epoch} goes on after ${opening.base}, not ${seq}`);
      if (opening.holder !== undefined && holders.at(-1) === opening.holder)
        violations.push(`epoch ${entry.epoch} has the holder of the one before`);
      holders.push(opening.holder);
      epoch = entry.epoch;
      continue;
    }
    if (entry.epoch !== epoch) violations.push(`${id} was written in epoch ${epoch}`);
    if (entry.kind === 'end') ended = true;
    else {
      const { last, events } = recordIn(fields) ?? { last: entry.seq, events: plainEventsOf(fields) };
      if (last !== entry.seq || last - events !== Math.max(seq, 0))
        violations.push(`${id} has events ${last - events + 1} to ${last} after ${seq}`);
      seq = last;
    }
  }
  return { epochs: epoch, violations };
}

/** The JSON line, without the checksum in front of it. */
function lineOf(fields: readonly string[]): string {
  const line = fields[fields.indexOf('l') + 1] ?? '';
  return line.slice(line.indexOf(' ') + 1);
}

/** Undefined if the entry is plain text, not JSON. */
function recordIn(fields: readonly string[]): { readonly last: number; readonly events: number } | undefined {
  if (/^[~^]/.test(fields[1] ?? '')) return undefined;
  const [last, segments] = JSON.parse(lineOf(fields)) as [number, readonly (readonly unknown[])[]];
  return { last, events: segments.reduce((sum, segment) => sum + eventsOf(segment), 0) };
}

/** The field before the time and the proof has one digit per event: the length of its text. */
const plainEventsOf = (fields: readonly string[]): number => fields[1]?.split(' ').at(-3)?.length ?? 0;

/** A merged series lists the length of each event; any other segment is one event. */
const eventsOf = ([code, , lengths]: readonly unknown[]): number =>
  code === 'e' || !Array.isArray(lengths) ? 1 : lengths.length;
