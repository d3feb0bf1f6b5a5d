import { type Interruption, withoutMessage } from '../interrupts/interruption.ts';
import type { Plan } from '../plans/decide.ts';
import type { AttemptReport } from './attempt-report.ts';
import type { PlannedAttempt } from './recovery-request.ts';
import type { RunContext } from './run.ts';
import type { Turn } from './turn.ts';

/** Counts how an attempt ended, and whether the plan that led to it worked, and tells whoever watches the run. */
export function countAttempt(
  turn: Turn,
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
  if (splice?.isOpen) metrics.seams.inc({ kind: splice.seam });
  if (plan) {
    const worked = report.ending || report.added > 0;
    metrics.recoveries.inc({ plan: plan.kind, mode, outcome: worked ? 'succeeded' : 'failed' });
  }
  const { added, usage, answer_id } = report;
  turn.watch?.attemptEnded({
    outcome,
    added,
    ...(splice?.isOpen && { seam: splice.seam }),
    ...(interruption && { interruption: withoutMessage(interruption) }),
    ...(usage && { usage }),
    ...(answer_id !== undefined && { answer_id }),
  });
}
