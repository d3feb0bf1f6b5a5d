import { foldJournal } from '../../checkpoint/journal-fold.ts';
import type { StoredRun } from '../../checkpoint/store.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { tokenCount } from '../../plans/tokens.ts';

/** Counts a request that comes back to the run of its step, and what it would have cost without that. */
export function countReturn(stored: StoredRun, metrics: Metrics): void {
  const { status, holder, records } = stored;
  if (status !== 'complete') {
    const isUnderWay = status === 'running' && holder.state === 'alive';
    metrics.steps.inc({ outcome: isUnderWay ? 'attached' : 'continued' });
    return;
  }
  metrics.steps.inc({ outcome: 'replayed' });
  const { usage } = foldJournal(records);
  metrics.tokens.inc({ kind: 'saved' }, tokenCount(usage?.prompt_tokens));
  metrics.tokens.inc({ kind: 'saved' }, tokenCount(usage?.completion_tokens));
}
