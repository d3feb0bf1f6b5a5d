import { TTL_S_MAX } from '../../config/recovery-schema.ts';
import type { Fields } from '../../lib/json-body.ts';
import type { TaskTerms } from '../tasks/agreed-terms.ts';
import type { Ending } from '../tasks/task-states.ts';
import { invalid, nameOf } from './request-fields.ts';
import { BUDGET_TOKENS_MAX, STEPS_TOTAL_MAX, TASK_DEADLINE_MS_MAX } from './task-options.ts';

export const DESCRIPTION_CHARACTERS_MAX = 1000;

/**
 * Parses `{description, steps_total, deadline_at, budget_tokens}`. Absent and `null` fields are unset. Throws
 * `invalid_field`.
 */
export function termsIn(fields: Fields, now_ms: number): TaskTerms {
  const { description, steps_total, deadline_at, budget_tokens, ...others } = fields;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw invalid(unknown, 'absent: there are description, steps_total, deadline_at and budget_tokens');
  return {
    ...(isSaid(description) && { description: descriptionOf(description) }),
    ...(isSaid(steps_total) && { steps_total: countOf('steps_total', steps_total, STEPS_TOTAL_MAX) }),
    ...(isSaid(deadline_at) && { deadline_at_ms: deadlineOf(deadline_at, now_ms) }),
    ...(isSaid(budget_tokens) && {
      budget_tokens: countOf('budget_tokens', budget_tokens, BUDGET_TOKENS_MAX),
    }),
  };
}

/** `{reason}`. Throws `invalid_field`. */
export function reasonIn({ reason, ttl_s }: Fields): string | undefined {
  if (ttl_s !== undefined) throw invalid('ttl_s', 'absent: it is for a task that ends');
  return reason === undefined ? undefined : nameOf('reason', reason);
}

/** `{reason, ttl_s}`. `usual_ttl_s`: the default for `ttl_s`. Throws `invalid_field`. */
export function endingIn({ ttl_s, ...fields }: Fields, usual_ttl_s: number | undefined): Ending {
  const reason = reasonIn(fields);
  const kept_s = ttl_s === undefined ? usual_ttl_s : countOf('ttl_s', ttl_s, TTL_S_MAX);
  return {
    ...(reason !== undefined && { reason }),
    ...(kept_s !== undefined && { kept_ms: kept_s * 1000 }),
  };
}

const isSaid = (value: unknown): boolean => value !== undefined && value !== null;

function descriptionOf(value: unknown): string {
  if (typeof value === 'string' && value.length <= DESCRIPTION_CHARACTERS_MAX) return value;
  throw invalid('description', `a text of at most ${DESCRIPTION_CHARACTERS_MAX} characters`);
}

function countOf(param: string, value: unknown, max: number): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max) return value as number;
  throw invalid(param, `a whole number from 1 to ${max}`);
}

function deadlineOf(value: unknown, now_ms: number): number {
  const deadline_at_ms = typeof value === 'number' ? value * 1000 : Number.NaN;
  if (deadline_at_ms > now_ms && deadline_at_ms <= now_ms + TASK_DEADLINE_MS_MAX) return deadline_at_ms;
  throw invalid('deadline_at', 'a time to come within a year, in seconds since the Unix epoch');
}
