import type { RecoveryPolicy } from '../config/configuration.ts';
import { type Interruption, isUnreached } from '../interrupts/interruption.ts';

/** The limits a run's recovery is held to. */
export type BudgetLimits = Pick<
  RecoveryPolicy,
  'max_attempts' | 'unreachable_ms' | 'no_progress_ms' | 'backoff_ms' | 'backoff_max_ms'
>;

/** `retry_after`: every target that is left asks for a longer wait than is allowed. */
export type Exhaustion =
  | 'attempts'
  | 'no_progress'
  | 'repeated_failure'
  | 'work'
  | 'deadline'
  | 'retry_after';

/** What a run has spent so far. A value: {@link charge} returns the next one. */
export interface Budget {
  /** Attempts since the last progress, the one that made it included: what counts against `max_attempts`. */
  readonly charged: number;
  /** Recoveries in a row that brought the client nothing new: the exponent of the backoff. */
  readonly fruitless: number;
  readonly progress_at_ms: number;
  /** Of the last attempt that spoke. */
  readonly death?: Death;
}

/** Where attempts that spoke have died, one after the other. Those that said nothing in between tell nothing. */
export interface Death {
  /** Position of the target that was asked, where there are several. */
  readonly target?: number;
  readonly position: number;
  readonly count: number;
}

/** Deaths at one place that make it poison: cut twice at the same character, an attempt may have met chance or a proxy's limit. */
const POISON_DEATHS = 3;

/**
 * `Retry-After` is a minimum, and every client that was refused in one moment was given the same one:
 * without this spread they would all be back in one moment too.
 */
const RETRY_AFTER_SPREAD = 0.1;

/** Without `max_tokens` in a request, as much may be generated for it as if it had this one. */
const MAX_TOKENS_DEFAULT = 32_768;
/** A short limit on the answer says nothing about the prompt, which every attempt costs again. */
const MAX_TOKENS_MIN = 4096;
const WORK_PER_MAX_TOKENS = 4;
/** What an attempt counts for at least: its prompt was read, however little it said. */
const ATTEMPT_TOKENS_MIN = 256;

export const newBudget = (now_ms: number): Budget => ({ charged: 0, fruitless: 0, progress_at_ms: now_ms });

interface Charge {
  readonly interruption: Interruption;
  /** Raw position in the answer at which the attempt died; `undefined` if it had said nothing. */
  readonly position: number | undefined;
  /** Characters that this attempt added. */
  readonly added: number;
  readonly now_ms: number;
  /** Position of the target that was asked, where there are several. */
  readonly target?: number;
  /** It was to come back to the answer, and found nothing there: that takes no attempt from the other ways of asking. */
  readonly gone?: boolean;
  /** Some of the answer has been delivered. */
  readonly begun?: boolean;
}

/**
 * The budget after an interrupted attempt. A connection that cannot be made costs nothing, and fails in no time: attempts would
 * be spent before a provider that restarts could be up again. For `unreachable_ms` it takes none from an answer that has begun.
 * One that has not begun leaves its client free to ask again, or elsewhere.
 */
export function charge(
  budget: Budget,
  failure: Charge,
  limits: Pick<BudgetLimits, 'unreachable_ms'>,
): Budget {
  const { interruption, added, now_ms, gone = false, begun = false } = failure;
  const advanced = added > 0;
  const isAwaited =
    begun && isUnreached(interruption) && now_ms - budget.progress_at_ms < limits.unreachable_ms;
  // Then it was the way of asking that failed, not the provider; another way may do at the same place.
  const isOurs = gone || interruption.evidence.kind === 'seam_rejected';
  const death = isOurs ? budget.death : deathAfter(budget.death, failure);
  return {
    charged: advanced ? 1 : budget.charged + (gone || isAwaited ? 0 : 1),
    fruitless: advanced || budget.charged === 0 ? 0 : budget.fruitless + 1,
    progress_at_ms: advanced ? now_ms : budget.progress_at_ms,
    ...(death && { death }),
  };
}

/** Failures before the first token are an outage, which refuses every request before it has seen what is in it. */
export function deathAfter(
  before: Death | undefined,
  { position, target }: Pick<Charge, 'position' | 'target'>,
): Death | undefined {
  if (position === undefined) return before;
  const isSame = before !== undefined && before.position === position && before.target === target;
  return { ...(target !== undefined && { target }), position, count: isSame ? before.count + 1 : 1 };
}

/** The request itself, or what the model was about to say, kills the attempt. */
export const isPoison = (death: Death | undefined): boolean => (death?.count ?? 0) >= POISON_DEATHS;

/** The state of a run that its budget does not hold. */
export interface Spending {
  readonly now_ms: number;
  /** Tokens that all of its attempts have generated; see {@link attemptWork}. */
  readonly work_tokens: number;
  readonly max_work_tokens: number;
  /** Until the deadline of the run; infinite without one. */
  readonly left_ms: number;
  /** Another target is asked next: what was poison for this one may not be for that one. */
  readonly moves: boolean;
}

export function exhaustion(budget: Budget, limits: BudgetLimits, spending: Spending): Exhaustion | undefined {
  const { now_ms, work_tokens, max_work_tokens, left_ms, moves } = spending;
  if (budget.charged >= limits.max_attempts) return 'attempts';
  if (!moves && isPoison(budget.death)) return 'repeated_failure';
  if (left_ms <= 0) return 'deadline';
  if (work_tokens >= max_work_tokens) return 'work';
  if (now_ms - budget.progress_at_ms >= limits.no_progress_ms) return 'no_progress';
  return undefined;
}

/** What an attempt that generated so many tokens counts for. */
export const attemptWork = (tokens: number): number => Math.max(tokens, ATTEMPT_TOKENS_MIN);

/** How much may be generated for a request with this `max_tokens`, infinite if it has none. */
export function workLimit(configured: number | undefined, max_tokens: number): number {
  const asked = Number.isFinite(max_tokens) ? Math.max(max_tokens, MAX_TOKENS_MIN) : MAX_TOKENS_DEFAULT;
  return configured ?? WORK_PER_MAX_TOKENS * asked;
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
  return Math.max(backoff, retry_after_ms * (1 + RETRY_AFTER_SPREAD * random));
}
