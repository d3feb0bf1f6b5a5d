import { isPartial } from '../plans/outcome.ts';
import type { JournalEvent } from './journal.ts';
import { foldJournal, type JournalFold } from './journal-fold.ts';
import type { Owner, RunEnd, RunId, StoredRun } from './store.ts';

/** The end's cause if the replica died before recording one. */
export const REPLICA_LOST = 'replica_lost';

/** A finalised orphan. */
export interface SalvagedRun {
  readonly run: RunId;
  readonly owner: Owner;
  readonly end: RunEnd;
  readonly journal: JournalFold;
  /** The client has already received the error, and all notices about it were left then. */
  readonly givenUp: boolean;
}

/** The end of an orphan, derived from its journal. */
export function salvagedRun(run: RunId, owner: Owner, stored: StoredRun, at_ms: number): SalvagedRun {
  const journal = foldJournal(stored.records);
  const givenUp = givenUpIn(journal.events.at(-1));
  const end = endOf(stored, journal, givenUp, at_ms);
  return { run, owner, journal, end, givenUp: givenUp !== undefined };
}

function endOf(
  { damage }: StoredRun,
  journal: JournalFold,
  givenUp: GivenUp | undefined,
  at_ms: number,
): RunEnd {
  // The replica died after storing the finish chunk and before sealing the run.
  if (journal.finish !== undefined && !damage) return { status: 'complete', at_ms };
  const cause = givenUp?.cause ?? REPLICA_LOST;
  if (!saysAnything(journal)) return { status: 'failed', at_ms, cause };
  if (givenUp) return { status: cause === 'idle_stall' ? 'timeout_partial' : 'failed', at_ms, cause };
  return { status: 'recovered_from_partial', at_ms, cause };
}

/** Whether there is a partial answer. In a run without an end, calls that the client saw count. */
export const saysAnything = (journal: JournalFold): boolean =>
  isPartial(journal) || journal.tool_calls.length + journal.choiceCalls.length > 0;

/** The relevant part of an error event written by Holdfast. */
interface GivenUp {
  readonly cause: string;
}

/** The details of the error event that ends a run that was given up. */
function givenUpIn(event: JournalEvent | undefined): GivenUp | undefined {
  if (!event?.payload?.startsWith('{"error":')) return undefined;
  const { error } = JSON.parse(event.payload) as { error: { holdfast?: GivenUp } | null };
  return error?.holdfast;
}
