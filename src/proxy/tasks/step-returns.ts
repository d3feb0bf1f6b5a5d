import type { Owner, StoredRun } from '../../checkpoint/store.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { tokensOf, usageOf } from './task-usage.ts';

/** Counts a request that returned to the run of its step, and the tokens that saved. */
export function countReturn(
  stored: StoredRun,
  owner: Owner,
  { metrics, observer }: Pick<RunContext, 'metrics' | 'observer'>,
): void {
  const { status, holder, records } = stored;
  if (status !== 'complete') {
    const isUnderWay = status === 'running' && holder.state === 'alive';
    metrics.steps.inc({ outcome: isUnderWay ? 'attached' : 'continued' });
    return;
  }
  metrics.steps.inc({ outcome: 'replayed' });
  const tokens = tokensOf(usageOf(stored));
  metrics.tokens.inc({ kind: 'saved' }, tokens);
  const step = records[0]?.header?.step;
  if (step) observer.replayed?.({ step: { ...step, owner }, tokens });
}
