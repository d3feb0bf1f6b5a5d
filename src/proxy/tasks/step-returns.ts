import type { StoredRun } from '../../checkpoint/store.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { tokensOf, usageOf } from './task-usage.ts';

/** Counts a request that comes back to the run of its step, and what it would have cost without that. */
export function countReturn(stored: StoredRun, metrics: Metrics): void {
  const { status, holder } = stored;
  if (status !== 'complete') {
    const isUnderWay = status === 'running' && holder.state === 'alive';
    metrics.steps.inc({ outcome: isUnderWay ? 'attached' : 'continued' });
    return;
  }
  metrics.steps.inc({ outcome: 'replayed' });
  metrics.tokens.inc({ kind: 'saved' }, tokensOf(usageOf(stored)));
}
