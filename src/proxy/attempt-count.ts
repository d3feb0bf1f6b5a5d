import type { Interruption } from '../interrupts/interruption.ts';
import type { Plan } from '../plans/decide.ts';
import type { AttemptReport } from './attempt-report.ts';
import type { PlannedAttempt } from './recovery-request.ts';
import type { RunContext } from './run.ts';

/** Counts how an attempt ended, and whether the plan that led to it worked. */
export function countAttempt(
  { target, mode, splice }: PlannedAttempt,
  plan: Plan | undefined,
  report: AttemptReport,
  interruption: Interruption | undefined,
  { metrics }: RunContext,
): void {
  const upstream = target.name;
  metrics.attempts.inc({ upstream, outcome: interruption ? 'interrupted' : 'complete' });
  if (interruption)
    metrics.interruptions.inc({ cause: interruption.cause, phase: interruption.phase, upstream });
  if (splice?.isOpen) metrics.seams.inc({ kind: splice.seam });
  if (plan) {
    const outcome = report.ending || report.added > 0 ? 'succeeded' : 'failed';
    metrics.recoveries.inc({ plan: plan.kind, mode, outcome });
  }
}
