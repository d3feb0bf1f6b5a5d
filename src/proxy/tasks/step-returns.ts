import { foldJournal } from '../../checkpoint/journal-fold.ts';
import type { Owner, StoredRun } from '../../checkpoint/store.ts';
import { tokenCount } from '../../plans/tokens.ts';
import type { RunContext } from '../run/context/run-context.ts';

/** Counts a request that comes back to the run of its step, and what it would have cost without that. */
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
  const { usage } = foldJournal(records);
  const tokens = tokenCount(usage?.prompt_tokens) + tokenCount(usage?.completion_tokens);
  metrics.tokens.inc({ kind: 'saved' }, tokens);
  const step = records[0]?.header?.step;
  if (step) observer.replayed?.({ step: { ...step, owner }, tokens });
}
