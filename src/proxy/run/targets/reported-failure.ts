import { type Interruption, isPermanent } from '../../../interrupts/interruption.ts';
import type { Reaction } from '../../../plans/target-choice.ts';
import type { Target } from '../../upstream/target.ts';
import type { AttemptReport } from '../context/attempt-report.ts';

/** A failure that the client may have to be told of. */
export interface ReportedFailure {
  readonly interruption: Interruption;
  readonly report: AttemptReport;
  readonly target: Target;
  readonly reaction: Reaction;
  /** What the target was asked is not what the client has asked, but shorter. */
  readonly isCompressed?: boolean;
}

/**
 * Which of two failures is told when nothing is left. What came of asking for the rest, or of asking another target,
 * must not mask why that was done.
 */
export function moreInformative(before: ReportedFailure | undefined, now: ReportedFailure): ReportedFailure {
  const { interruption, reaction, target, isCompressed } = now;
  if (!before) return now;
  // Of what a target answers, the last is the client's.
  const same = target === before.target && !isCompressed ? { ...before, report: now.report } : before;
  if (reaction === 'ours' && interruption.evidence.kind !== 'replica_lost') return same;
  if (!isPermanent(interruption.cause)) return now;
  // The operator's fault is nobody else's business; what ends everything is.
  const isFinal = reaction === 'final' && target !== before.target;
  return before.reaction === 'misconfigured' || isFinal ? now : same;
}
