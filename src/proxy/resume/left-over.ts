import { CLIENT_LEFT, type RunEnd, type StoredRun } from '../../checkpoint/store.ts';
import { wireOf } from '../wires/registry.ts';

/**
 * Whether a run has ended early, without a word to its client, so that the same request may go on from what there is of
 * it: its replica died, its client left, or part of its journal was damaged. A run that was given up has told its client.
 *
 * `stored`: the whole run.
 */
export function isLeftOver(stored: StoredRun): boolean {
  const { status, end, records } = stored;
  if (status !== 'recovered_from_partial' && !(end && hasLeft(end))) return false;
  const events = records.flatMap((record) => record.events);
  if (!records[0]?.header || !events.some(({ deltas }) => deltas.length > 0)) return false;
  const last = events.at(-1)?.payload;
  return last === undefined || wireOf(stored).delivered.endOf(last) === undefined;
}

/** Whether the client of the run cannot have had its whole answer: one whose journal was damaged later may have. */
export const isUnfinished = (end: RunEnd): boolean =>
  hasLeft(end) || (end.status === 'recovered_from_partial' && end.cause === 'replica_lost');

const hasLeft = ({ status, cause }: RunEnd): boolean => status === 'cancelled' && cause === CLIENT_LEFT;
