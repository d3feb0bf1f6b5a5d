import { type FoldedSegment, foldJournal } from '../../checkpoint/journal-fold.ts';
import type { Owner, RunId, StoredRun } from '../../checkpoint/store.ts';
import type { Delta, Segment } from '../../plans/delta.ts';
import { answerOf } from '../resume/stored-runs.ts';
import type { NumberedName } from '../tasks/numbered-names.ts';
import { runOfStep } from '../tasks/step-runs.ts';
import type { ApiContext } from './api-context.ts';
import type { Observed } from './numbered-watch.ts';
import { runSummary } from './run-documents.ts';
import { tokenOf } from './task-position.ts';

export interface ObservedStep extends Observed {
  readonly read?: ReadRun;
}

/** The last read of a run, without its content. */
interface ReadRun extends Pick<StoredRun, 'status' | 'holder' | 'takeovers' | 'seq'> {
  readonly run: RunId;
}

/**
 * The current state of the step. A run that was read before is read incrementally, unless there is news. Throws
 * `store_unavailable`.
 */
export async function observeStep(
  owner: Owner,
  { number, name }: NumberedName,
  before: ObservedStep | undefined,
  context: ApiContext,
): Promise<ObservedStep> {
  const run = await answerOf(runOfStep(context.store, owner, name), context);
  const last = before?.read;
  if (run !== undefined && before && last?.run === run) {
    const since = await answerOf(context.store.read(run, owner, last.seq), context);
    if (since && !isNews(last, since)) return { ...before, read: readRun(run, since) };
  }
  const stored = run === undefined ? null : await answerOf(context.store.read(run, owner, 0), context);
  if (run === undefined || !stored) return notBegun(number);
  const { status, holder, takeovers, records } = stored;
  const recoveries = foldJournal(records).segments.filter(isContinued).map(recoveryOf);
  return {
    token: tokenOf([run, status, holder.state, takeovers.length, recoveries.length]),
    document: { object: 'holdfast.step', number, run: runSummary(run, stored), recoveries },
    isFinal: status === 'complete',
    isUnderWay: status === 'running',
    read: readRun(run, stored),
  };
}

/** The step has no run yet, or its run was purged. */
const notBegun = (number: number): ObservedStep => ({
  token: tokenOf([]),
  document: { object: 'holdfast.step', number, run: null, recoveries: [] },
  isFinal: false,
  isUnderWay: false,
});

const readRun = (run: RunId, { status, holder, takeovers, seq }: StoredRun): ReadRun => ({
  run,
  status,
  holder,
  takeovers,
  seq,
});

const isNews = (before: ReadRun, { status, holder, takeovers, records }: StoredRun): boolean =>
  status !== before.status ||
  holder.state !== before.holder.state ||
  takeovers.length !== before.takeovers.length ||
  records.some(({ events }) => events.some(({ deltas }) => deltas.some(continues)));

const continues = (delta: Delta): boolean => delta.kind === 'segment' && isContinued(delta);

/** The segment follows an interruption. */
const isContinued = ({ cause }: Segment): boolean => cause !== undefined;

const recoveryOf = ({ attempt, upstream, mode, plan, cause }: FoldedSegment) => ({
  attempt: attempt ?? null,
  upstream: upstream ?? null,
  mode,
  plan: plan ?? null,
  cause: cause ?? null,
});
