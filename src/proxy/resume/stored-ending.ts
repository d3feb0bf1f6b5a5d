import type { JournalEvent } from '../../checkpoint/journal.ts';
import { foldJournal, type JournalFold } from '../../checkpoint/journal-fold.ts';
import type { RunEnd, RunId, StoredRun } from '../../checkpoint/store.ts';
import { errorObject } from '../../errors.ts';
import { storedFailureEvent } from '../failure.ts';
import type { DeliveredEvents } from '../wires/delivered-events.ts';
import { wireOf } from '../wires/registry.ts';
import type { Wire } from '../wires/wire.ts';

/**
 * A run that is over, with the events that end its stream, which its replica may have had no time to write: always the
 * same ones, so that they can be counted like the others. Settled calls are the answer of a run that was salvaged;
 * everything else ends with an error, so that nothing takes a partial for the whole.
 */
export function withEnding(run: RunId, stored: StoredRun): StoredRun {
  const { end, records } = stored;
  const last = records.at(-1)?.events.at(-1)?.payload;
  const wire = wireOf(stored);
  if (!end || (last !== undefined && wire.delivered.endOf(last))) return stored;
  const events = endingOf(run, foldJournal(records), end, wire);
  const seq = stored.seq + events.length;
  return { ...stored, seq, records: [...records, { seq, events }] };
}

function endingOf(
  run: RunId,
  journal: JournalFold,
  end: RunEnd,
  { delivered }: Wire,
): readonly JournalEvent[] {
  if (journal.finish !== undefined) return delivered.done;
  const settled = journal.tool_calls.find(({ closed }) => closed !== undefined);
  if (!settled || !isSalvaged(end)) return [failure(run, journal, end, delivered)];
  // Every call has an id, but for the one of the legacy `functions` interface.
  const reason = settled.id === '' ? 'function_call' : 'tool_calls';
  return delivered.ending(journal.events, reason);
}

const isSalvaged = ({ status }: RunEnd): boolean =>
  status === 'recovered_from_partial' || status === 'timeout_partial';

function failure(
  run: RunId,
  journal: JournalFold,
  { status, cause = status }: RunEnd,
  delivered: DeliveredEvents,
): JournalEvent {
  const isCancelled = status === 'cancelled';
  const error = isCancelled ? errorObject('run_cancelled') : errorObject('run_salvaged', { status });
  const event = storedFailureEvent(run, journal, { error, cause, retryable: !isCancelled });
  return { deltas: [], payload: delivered.failure(event, journal.events) };
}
