import { type EpochName, epochNames, FIRST_EPOCH_NAME } from '../../checkpoint/epoch.ts';
import type { JournalEvent, JournalRecord } from '../../checkpoint/journal.ts';
import type { StoredRun, Takeover } from '../../checkpoint/store.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { RestoredRun, readableTail } from '../run/restored-run.ts';
import { type DeliveredReader, textOf } from '../wires/common/delivered-events.ts';
import type { Wire } from '../wires/common/wire.ts';
import { wireOf } from '../wires/registry.ts';
import type { Position } from './reader.ts';
import { isUnfinished, withEnding } from './stored-ending.ts';

type Possession = Pick<Position, 'cursor' | 'tail' | 'asked'>;

/**
 * False if continuing would leave a gap or join two different logs: the client has events that are neither in the store
 * nor in its tail, or that differ from the stored ones. Answer with `cursor_ahead` before opening a response. `stored`:
 * the whole run, read from 0.
 */
export function reachable(stored: StoredRun, position: Position): boolean {
  const { run, cursor, epoch, tail, asked } = position;
  const told_from = cursor - tail.length;
  const wire = wireOf(stored, asked);
  if (told_from < 0 || !readableTail(tail, wire)) return false;
  const { status, holder, seq, records, takeovers } = withEnding(run, stored);
  if (cursor > seq) {
    const isOnItsWay = status === 'running' && holder.state === 'alive';
    if (!isOnItsWay && (status !== 'running' || told_from > seq || endsWithinCall(stored, position)))
      return false;
  }
  // An ending added later may differ from what the client received at that position.
  if (cursor > stored.seq && seq > stored.seq && told_from > stored.seq) return false;
  // Events replaced by a later epoch can only be compared with the client's tail.
  return replacedFrom(takeovers, epoch) >= told_from && agrees(records, { cursor, tail }, wire);
}

/**
 * A separate run for a client whose answer differs from the log: their common part, which the client's tail continues.
 * Another replica took the run over from before the client's position, or ended it. `undefined` if events are missing
 * between the two, if they contradict each other where no takeover replaced anything, or if the run was cancelled.
 * `stored`: the whole run, read from 0, and not {@link reachable}.
 */
export function forkOf(stored: StoredRun, { epoch, ...position }: Position): StoredRun | undefined {
  const { end, records, takeovers } = stored;
  if (end?.status === 'cancelled' && !isUnfinished(end)) return undefined;
  const seq = Math.min(stored.seq, replacedFrom(takeovers, epoch));
  const fork: StoredRun = {
    status: 'running',
    epoch: 1,
    holder: { state: 'released' },
    takeovers: [],
    seq,
    records: recordsUpTo(seq, records),
  };
  return position.cursor > seq && reachable(fork, position) ? fork : undefined;
}

function recordsUpTo(seq: number, records: readonly JournalRecord[]): readonly JournalRecord[] {
  return records
    .filter((record) => record.seq - record.events.length < seq || record.header)
    .map((record) => {
      const excess = Math.max(record.seq - seq, 0);
      return {
        ...record,
        seq: record.seq - excess,
        events: record.events.slice(0, record.events.length - excess),
      };
    });
}

/** The events of the tail that the store doesn't have. */
export const beyond = (
  { seq }: Pick<StoredRun, 'seq'>,
  { cursor, tail }: Pick<Position, 'cursor' | 'tail'>,
): readonly string[] => tail.slice(tail.length - Math.max(cursor - seq, 0));

/** The run as the client has it, as far as known without its request. */
export function restoredAt(stored: StoredRun, position: Possession): RestoredRun {
  const { asked } = position;
  const rules = { wire: wireOf(stored, asked), schemas: new Map(), tool_proof: 1, forwarded: false } as const;
  return new RestoredRun(
    { stored, tail: beyond(stored, position) },
    { ...rules, live: (stored.records[0]?.header ?? asked)?.events !== 'none' },
  );
}

/**
 * Whether a client that gets whole calls has an incomplete one. A replica sent it before storing it, then lost its
 * store, so the rest is gone.
 */
function endsWithinCall(stored: StoredRun, position: Possession): boolean {
  const { asked } = position;
  const told = stored.records[0]?.header ?? asked;
  const isWhole = told?.events === 'none' && wireOf(stored, asked).delivered.showsCloses;
  return isWhole === true && restoredAt(stored, position).transcript.openCalls.length > 0;
}

/** Whether the stored events match those in the client's tail. */
export function agrees(
  records: readonly JournalRecord[],
  { cursor, tail }: Pick<Position, 'cursor' | 'tail'>,
  wire: Wire,
): boolean {
  const reader = wire.delivered.reader();
  const told_from = cursor - tail.length;
  return records.every(({ events, seq }) => {
    const first = seq - events.length + 1;
    return events.every((event, index) => saysTheSame(event, tail[first + index - told_from - 1], reader));
  });
}

/**
 * The last event that has certainly not been replaced since the client received it. A client without an epoch may have
 * received everything under the first one, and the content of a log that lost an epoch is unknown.
 */
export function replacedFrom(takeovers: readonly Takeover[], epoch: EpochName = FIRST_EPOCH_NAME): number {
  const place = epochNames(takeovers).indexOf(epoch);
  return place < 0 ? 0 : Math.min(...takeovers.slice(place).map(({ seq }) => seq));
}

function saysTheSame(event: JournalEvent, payload: string | undefined, reader: DeliveredReader): boolean {
  if (payload === undefined) return true;
  if (event.payload !== undefined) return event.payload === payload;
  const read = reader.read(payload, 0);
  return read !== undefined && textOf(read.deltas) === textOf(event.deltas);
}

/** Why the client's events can't be joined to the log, and what the client could bring to change that. */
export function unreachable(
  { seq: stored_seq, takeovers }: Pick<StoredRun, 'seq' | 'takeovers'>,
  { run, cursor, epoch, tail }: Pick<Position, 'run' | 'cursor' | 'epoch' | 'tail'>,
): ApiError {
  const seq = Math.min(stored_seq, replacedFrom(takeovers, epoch));
  if (tail.length === 0) return apiError('cursor_ahead', { run, cursor, seq });
  const missing_to = cursor - tail.length;
  if (missing_to > seq) return apiError('tail_incomplete', { run, seq, missing_from: seq + 1, missing_to });
  return apiError('tail_mismatch', { run, cursor });
}
