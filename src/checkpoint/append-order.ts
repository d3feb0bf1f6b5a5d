import type { JournalRecord } from './journal.ts';
import type { RunId } from './store.ts';
import { JournalGapError } from './store.ts';

/** The sequence number of a run without any record, not even its header. */
export const NOTHING_STORED = -1;

/** Why `record` cannot come right after the record that ended at `seq` (-1: after nothing). */
export function discontinuity(record: JournalRecord, seq: number): string | undefined {
  if (seq < 0) {
    return record.seq === 0 && record.header && record.events.length === 0
      ? undefined
      : 'header record missing';
  }
  if (record.header) return 'second header record';
  if (record.events.length === 0) return 'empty record';
  const first = record.seq - record.events.length + 1;
  return first === seq + 1 ? undefined : `events ${first} to ${record.seq} do not follow event ${seq}`;
}

/**
 * The records that are not stored yet. A batch is sent again when its fate is unknown, so what is stored is skipped;
 * what does not follow it is refused with a {@link JournalGapError}.
 */
export function recordsToAppend(
  run: RunId,
  stored_seq: number,
  records: readonly JournalRecord[],
): readonly JournalRecord[] {
  const fresh = records.filter((record) => record.seq > stored_seq);
  let seq = stored_seq;
  for (const record of fresh) {
    const reason = discontinuity(record, seq);
    if (reason) throw new JournalGapError(run, reason);
    seq = record.seq;
  }
  return fresh;
}

/** Whether a record has anything after the cursor `from`; 0 asks for the whole run, its header included. */
export const isAfter = (record: JournalRecord, from: number): boolean => from <= 0 || record.seq > from;

/** Lets one change of a run happen at a time, in the order in which they were asked for. */
export interface Turns {
  isTaken: boolean;
  waiting: (() => void)[] | undefined;
}

/** Calls `start` when its turn has come, at once if the turn is free. What is started must call {@link endTurn}. */
export function takeTurn(turns: Turns, start: () => void): void {
  if (turns.isTaken) {
    turns.waiting ??= [];
    turns.waiting.push(start);
    return;
  }
  turns.isTaken = true;
  start();
}

export function endTurn(turns: Turns): void {
  turns.isTaken = false;
  const next = turns.waiting?.shift();
  if (next) takeTurn(turns, next);
}
