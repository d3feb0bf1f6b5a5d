import type { JournalRecord } from './journal.ts';
import type { RunId } from './store.ts';
import { JournalGapError } from './store.ts';

/** The sequence number of a run that has no records, not even its header. */
export const NOTHING_STORED = -1;

/** Why `record` can't directly follow the record that ended at `seq` (-1: no record); undefined if it can. */
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
 * The records that aren't stored yet. A batch with an unknown fate is sent again, so stored records are skipped. Throws
 * a {@link JournalGapError} if a record doesn't follow.
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

/** Whether a record has events after the cursor `from`. 0 selects the whole run, including its header. */
export const isAfter = (record: JournalRecord, from: number): boolean => from <= 0 || record.seq > from;

/** Serialises changes to a run in the order in which they were requested. */
export interface Turns {
  isTaken: boolean;
  waiting: (() => void)[] | undefined;
}

/**
 * Calls `start` when its turn comes, immediately if none is in progress. The started work must call {@link endTurn}.
 */
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
