import { isPartial } from '../plans/outcome.ts';
import type { JournalEvent } from './journal.ts';
import { foldJournal, type JournalFold } from './journal-fold.ts';
import type { Owner, RunEnd, RunId, StoredRun } from './store.ts';

/** The cause of an end that no relay lived to write down. */
export const REPLICA_LOST = 'replica_lost';

/** An orphan that is finalised, and what is left of it. */
export interface SalvagedRun {
  readonly run: RunId;
  readonly owner: Owner;
  readonly end: RunEnd;
  readonly journal: JournalFold;
  /** Its client has received the error, and every notice about it was left then. */
  readonly givenUp: boolean;
}

/** How an orphan has to end, judging by its journal. */
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
  // Killed after the finish chunk was stored and before the run was sealed.
  if (journal.finish !== undefined && !damage) return { status: 'complete', at_ms };
  const cause = givenUp?.cause ?? REPLICA_LOST;
  if (!saysAnything(journal)) return { status: 'failed', at_ms, cause };
  if (givenUp) return { status: cause === 'idle_stall' ? 'timeout_partial' : 'failed', at_ms, cause };
  return { status: 'recovered_from_partial', at_ms, cause };
}

/** Whether there is a partial at all: in a run without an end, calls that its client saw are part of one. */
export const saysAnything = (journal: JournalFold): boolean =>
  isPartial(journal) || journal.tool_calls.length + journal.choiceCalls.length > 0;

/** The cause in an error event of ours. */
interface GivenUp {
  readonly cause: string;
}

/** The details in the error event that ends a run which was given up. */
function givenUpIn(event: JournalEvent | undefined): GivenUp | undefined {
  if (!event?.payload?.startsWith('{"error":')) return undefined;
  const { error } = JSON.parse(event.payload) as { error: { holdfast?: GivenUp } | null };
  return error?.holdfast;
}
