import { type Interruption, withoutMessage } from '../../interrupts/interruption.ts';
import type { Plan } from '../../plans/decide.ts';
import type { AttemptReport } from './context/attempt-report.ts';
import type { RunContext } from './context/run-context.ts';
import type { PlannedAttempt } from './next-attempt/recovery-request.ts';
import type { RunState } from './run-state.ts';

/** Counts how an attempt ended, and whether the plan that led to it worked, and tells whoever watches the run. */
export function countAttempt(
  state: RunState,
  { target, mode, splice }: PlannedAttempt,
  plan: Plan | undefined,
  report: AttemptReport,
  interruption: Interruption | undefined,
  { metrics }: RunContext,
): void {
  const upstream = target.name;
  const outcome = interruption ? 'interrupted' : 'complete';
  metrics.attempts.inc({ upstream, outcome });
  if (interruption)
    metrics.interruptions.inc({ cause: interruption.cause, phase: interruption.phase, upstream });
  // Where nothing is repeated first, a seam is open before anything has come.
  const isJoined = splice?.isOpen && (report.added > 0 || report.ending !== undefined);
  if (isJoined) metrics.seams.inc({ kind: splice.seam });
  if (plan) {
    const worked = report.ending || report.added > 0;
    metrics.recoveries.inc({ plan: plan.kind, mode, outcome: worked ? 'succeeded' : 'failed' });
  }
  const { added, usage, answer_id } = report;
  state.watch?.attemptEnded({
    outcome,
    added,
    ...(isJoined && { seam: splice.seam }),
    ...(interruption && { interruption: withoutMessage(interruption) }),
    ...(usage && { usage }),
    ...(answer_id !== undefined && { answer_id }),
  });
}
