import type { Cause, Interruption, Phase } from '../interrupts/interruption.ts';

/** The limits a run's recovery is held to; all from `recovery.*` in the configuration. */
export interface BudgetLimits {
  readonly max_attempts: number;
  readonly no_progress_ms: number;
  readonly backoff_ms: number;
  readonly backoff_max_ms: number;
  readonly retry_after_max_s: number;
}

export type Exhaustion = 'attempts' | 'no_progress' | 'repeated_failure';

/** What a run has spent so far. A value: {@link charge} returns the next one. */
export interface Budget {
  /** Upstream requests made so far. */
  readonly attempts: number;
  /** Attempts that count against `max_attempts`. */
  readonly charged: number;
  /** Attempts that did not count because they got the answer a good way on. */
  readonly forgiven: number;
  /** Recoveries in a row that brought the client nothing new: the exponent of the backoff. */
  readonly fruitless: number;
  readonly progress_at_ms: number;
  readonly last?: Failure;
  readonly repeated: boolean;
}

/** How an attempt failed, as far as it tells whether the next one will fail in the same way. */
export interface Failure {
  /** Position of the target that failed, where there are several. */
  readonly target?: number;
  readonly cause: Cause;
  readonly phase: Phase;
  readonly offset: number;
  /** The attempt brought something new before it died. */
  readonly advanced: boolean;
}

/** An attempt that added this much made real progress and is forgiven, at most `max_attempts` times a run. */
const PROGRESS_CHARACTERS = 200;

/**
 * `Retry-After` is a minimum, and every client that was refused in one moment was given the same one:
 * without this spread they would all be back in one moment too.
 */
const RETRY_AFTER_SPREAD = 0.1;

export function newBudget(now_ms: number): Budget {
  return { attempts: 0, charged: 0, forgiven: 0, fruitless: 0, progress_at_ms: now_ms, repeated: false };
}

export interface Charge {
  readonly interruption: Interruption;
  /** Characters delivered by the whole run up to now: where the failure happened. */
  readonly offset: number;
  /** Characters that this attempt added. */
  readonly added: number;
  readonly now_ms: number;
  /** Position of the target that was asked, where there are several. */
  readonly target?: number;
  /** It was to come back to the answer, and found nothing there: that takes no attempt from the other ways of asking. */
  readonly gone?: boolean;
  /** Another target is asked next: whatever this one fails at, that one may not. */
  readonly moves?: boolean;
}

/** The budget after an interrupted attempt. */
export function charge(
  budget: Budget,
  limits: BudgetLimits,
  { interruption, offset, added, now_ms, target, gone = false, moves }: Charge,
): Budget {
  const forgive = added >= PROGRESS_CHARACTERS && budget.forgiven < limits.max_attempts;
  const { cause, phase, evidence } = interruption;
  const failure = { ...(target !== undefined && { target }), cause, phase, offset, advanced: added > 0 };
  // Then it was the way of asking that failed, not the provider; another way may do at the same place.
  const isOurs = gone || evidence.kind === 'seam_rejected';
  return {
    attempts: budget.attempts + 1,
    charged: budget.charged + (forgive || gone ? 0 : 1),
    forgiven: budget.forgiven + (forgive ? 1 : 0),
    fruitless: added > 0 || budget.attempts === 0 ? 0 : budget.fruitless + 1,
    progress_at_ms: added > 0 ? now_ms : budget.progress_at_ms,
    ...(isOurs ? budget.last && { last: budget.last } : { last: failure }),
    repeated: !isOurs && !moves && repeats(budget.last, failure),
  };
}

/**
 * A provider that dies at the same place in the same way twice will do so a third time. The attempt that got there
 * does not count: whatever cut it, the next one may be cut by chance before it says a word.
 */
export function repeats(before: Failure | undefined, now: Failure): boolean {
  // An outage refuses every request in the same way, before it has seen what is in it: that is no poison.
  if (now.phase === 'connect' || before === undefined || before.advanced) return false;
  if (before.target !== now.target) return false;
  return before.cause === now.cause && before.phase === now.phase && before.offset === now.offset;
}

export function exhaustion(budget: Budget, limits: BudgetLimits, now_ms: number): Exhaustion | undefined {
  if (budget.charged >= limits.max_attempts) return 'attempts';
  if (budget.repeated) return 'repeated_failure';
  if (now_ms - budget.progress_at_ms >= limits.no_progress_ms) return 'no_progress';
  return undefined;
}

/**
 * How long to wait before the next attempt, in milliseconds: exponential with full jitter, or what the provider
 * asked for, whichever is longer. `random` is uniform in [0, 1).
 */
export function backoffMs(
  budget: Budget,
  limits: BudgetLimits,
  retry_after_ms: number | undefined,
  random: number,
): number {
  const ceiling = Math.min(limits.backoff_max_ms, limits.backoff_ms * 2 ** budget.fruitless);
  const backoff = ceiling * random;
  if (retry_after_ms === undefined) return backoff;
  const asked = Math.min(retry_after_ms, limits.retry_after_max_s * 1000);
  return Math.max(backoff, asked * (1 + RETRY_AFTER_SPREAD * random));
}
