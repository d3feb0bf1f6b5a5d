import type { JournalEvent } from '../../checkpoint/journal.ts';
import { foldJournal, type JournalFold } from '../../checkpoint/journal-fold.ts';
import { CLIENT_LEFT, type RunEnd, type RunId, type StoredRun } from '../../checkpoint/store.ts';
import { errorObject } from '../../lib/errors.ts';
import type { Delta } from '../../plans/delta.ts';
import { storedFailureEvent } from '../run/failure.ts';
import { RestoredRun } from '../run/restored-run.ts';
import type { DeliveredEvents } from '../wires/common/delivered-events.ts';
import type { Wire } from '../wires/common/wire.ts';
import { wireOf } from '../wires/registry.ts';

/**
 * Adds the events that end the stream of a finished run, in case its replica could not write them. They are
 * deterministic, so they have ordinals like all others. Settled calls are the answer of a salvaged run; everything else
 * ends with an error, so that no client mistakes a partial answer for a complete one.
 */
export function withEnding(run: RunId, stored: StoredRun): StoredRun {
  const { end, records } = stored;
  const last = records.at(-1)?.events.at(-1)?.payload;
  const wire = wireOf(stored);
  if (!end || (last !== undefined && wire.delivered.endOf(last))) return stored;
  const events = endingOf(run, stored, end, wire);
  const seq = stored.seq + events.length;
  return { ...stored, seq, records: [...records, { seq, events }] };
}

function endingOf(run: RunId, stored: StoredRun, end: RunEnd, wire: Wire): readonly JournalEvent[] {
  const journal = foldJournal(stored.records);
  if (journal.finish !== undefined) return wire.delivered.done;
  const settled = journal.tool_calls.find(({ closed }) => closed !== undefined);
  if (!settled || !isSalvaged(end)) return failure(run, journal, end, wire.delivered);
  // Only the call of the legacy `functions` interface has no id.
  return answerEnd(stored, end, wire, settled.id === '' ? 'function_call' : 'tool_calls');
}

/** The end of the answer after all stored events: calls that were shown and are still open were cut. */
function answerEnd(
  stored: StoredRun,
  { status, cause = status }: RunEnd,
  wire: Wire,
  reason: string,
): readonly JournalEvent[] {
  const { model = '', events: mode = 'none' } = stored.records[0]?.header ?? {};
  const rules = { wire, schemas: new Map(), tool_proof: 1, live: mode !== 'none', forwarded: false } as const;
  const restored = new RestoredRun({ stored, tail: [] }, rules);
  const events: JournalEvent[] = [];
  let silent: Delta[] = [];
  const writer = wire.writer({
    events: mode,
    facts: wire.facts({ model, messages: [], stream: true }),
    sink: {
      send: (payload, deltas) => {
        events.push({ deltas: [...silent, ...deltas], payload });
        silent = [];
      },
      // A replay recreates comments from the recorded deltas.
      comment: () => {},
      keep: (delta) => void silent.push(delta),
      storeFirst: () => {},
    },
  });
  restored.restore(writer);
  const open = restored.transcript.openCalls.map(({ index }) => index);
  writer.cancelCalls(open, cause, restored.attempts);
  writer.finish({ reason, after: [], usageAsked: false });
  return events;
}

const isSalvaged = ({ status }: RunEnd): boolean =>
  status === 'recovered_from_partial' || status === 'timeout_partial';

function failure(
  run: RunId,
  journal: JournalFold,
  { status, cause = status }: RunEnd,
  delivered: DeliveredEvents,
): readonly JournalEvent[] {
  const isCancelled = status === 'cancelled';
  const error = isCancelled ? errorObject('run_cancelled') : errorObject('run_salvaged', { status });
  const event = storedFailureEvent(run, journal, { error, cause, retryable: !isCancelled });
  return delivered.failure(event, journal.events).map((payload) => ({ deltas: [], payload }));
}

/**
 * Whether a run ended early without telling its client, so that a repeated request may continue it: its replica was
 * lost, its client left, or its journal was damaged. A run that was given up has sent an error.
 *
 * `stored`: the whole run.
 */
export function isLeftOver(stored: StoredRun): boolean {
  const { status, end, records } = stored;
  if (status !== 'recovered_from_partial' && !(end && hasLeft(end))) return false;
  const events = records.flatMap((record) => record.events);
  if (!records[0]?.header || !events.some(({ deltas }) => deltas.length > 0)) return false;
  const last = events.at(-1)?.payload;
  const { delivered } = wireOf(stored);
  return last === undefined || (delivered.endOf(last) ?? delivered.announcedError?.(last)) === undefined;
}

/** Whether the client can't have received the whole answer. If only the journal was damaged later, it may have. */
export const isUnfinished = (end: RunEnd): boolean =>
  hasLeft(end) || (end.status === 'recovered_from_partial' && end.cause === 'replica_lost');

const hasLeft = ({ status, cause }: RunEnd): boolean => status === 'cancelled' && cause === CLIENT_LEFT;
