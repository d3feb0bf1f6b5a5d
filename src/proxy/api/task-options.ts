import type { IncomingHttpHeaders } from 'node:http';
import type { NamedTerms } from '../tasks/agreed-terms.ts';
import type { TaskSession } from '../tasks/task-steps.ts';
import { invalid, named, numberIn, single } from './request-fields.ts';

/** A year (366 days), longer than any store keeps a task. */
export const TASK_DEADLINE_MS_MAX = 31_622_400_000;
export const STEPS_TOTAL_MAX = 1_000_000;
export const BUDGET_TOKENS_MAX = 1_000_000_000_000;

const TASK = 'Holdfast-Task';
const DEADLINE = 'Holdfast-Task-Deadline-Ms';
const STEPS_TOTAL = 'Holdfast-Task-Steps-Total';
const BUDGET = 'Holdfast-Task-Budget-Tokens';
const SESSION = 'Holdfast-Task-Session';
const STEP = 'Holdfast-Task-Step';
const PARENT = 'Holdfast-Parent-Task';
/** Headers that are only valid next to `Holdfast-Task`. */
const BESIDE_TASK = [SESSION, STEP, PARENT, STEPS_TOTAL, DEADLINE, BUDGET].map((header) => ({
  header,
  name: header.toLowerCase(),
}));

/** The task named in a request's headers. Throws `invalid_field`. */
export function taskOptions(headers: IncomingHttpHeaders): TaskSession | undefined {
  const task = named(TASK, headers);
  if (task === undefined) {
    const stray = BESIDE_TASK.find(({ name }) => single(headers[name]) !== undefined);
    if (stray !== undefined) throw invalid(stray.header, `beside ${TASK}`);
    return undefined;
  }
  const session = named(SESSION, headers);
  const step = named(STEP, headers);
  const parent = named(PARENT, headers);
  const terms = termsOf(headers);
  if (parent === task) throw invalid(PARENT, `another task than ${TASK}`);
  return {
    task,
    ...(session !== undefined && { session }),
    ...(step !== undefined && { step }),
    ...(parent !== undefined && { parent }),
    ...(terms && { terms }),
  };
}

function termsOf(headers: IncomingHttpHeaders): NamedTerms | undefined {
  const steps_total = numberIn(STEPS_TOTAL, headers, 'steps', STEPS_TOTAL_MAX);
  const deadline_ms = numberIn(DEADLINE, headers, 'milliseconds', TASK_DEADLINE_MS_MAX);
  const budget_tokens = numberIn(BUDGET, headers, 'tokens', BUDGET_TOKENS_MAX);
  if (steps_total === undefined && deadline_ms === undefined && budget_tokens === undefined) return undefined;
  return {
    ...(steps_total !== undefined && { steps_total }),
    ...(deadline_ms !== undefined && { deadline_ms }),
    ...(budget_tokens !== undefined && { budget_tokens }),
  };
}
