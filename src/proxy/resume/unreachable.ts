import type { StoredRun } from '../../checkpoint/store.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { replacedFrom } from './reachable.ts';
import type { Position } from './reader.ts';

/** Why what the client has cannot be joined to what is stored, and what it could bring to change that. */
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
