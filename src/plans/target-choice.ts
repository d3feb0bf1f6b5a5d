import { type Interruption, isPermanent } from '../interrupts/interruption.ts';
import { type Death, deathAfter, isPoison } from './budget.ts';

/** A close after this much silence counts as a stall, because the next attempt may stay silent as long. */
const SILENCE_MS = 10_000;
/** The status with which a Holdfast refuses a request that it sent itself. */
const LOOP_DETECTED = 508;

/**
 * How the failure of a target affects the choice of the next one.
 *
 * `again`: may be transient. `next`: try another target first. `silent`: the client had to wait, which must not happen
 * twice. `outgrown`: only a larger context helps. `misconfigured`: the operator's fault, not the client's. `refused`:
 * the client's fault, unless other targets took the request. `final`: no other target may be asked. `outrun`: another
 * target answered first. `ours`: not the target's fault.
 */
export type Reaction =
  | 'again'
  | 'next'
  | 'silent'
  | 'outgrown'
  | 'misconfigured'
  | 'refused'
  | 'final'
  | 'outrun'
  | 'ours';

/** Which parts of a target's request the operator configured. */
export interface Ownership {
  /** The operator's key is sent, not the client's. */
  readonly key: boolean;
  /** The operator names the model, not the client. */
  readonly model: boolean;
}

/** `silent_ms`: how long the attempt had been silent when it ended. */
export function reactionTo(interruption: Interruption, own: Ownership, silent_ms = 0): Reaction {
  const isSilent = silent_ms >= SILENCE_MS;
  const { cause, phase, evidence, status, retry_after_ms } = interruption;
  switch (cause) {
    case 'content_filter':
      return 'final';
    case 'context_overflow':
      return 'outgrown';
    case 'invalid_request':
      if (status === LOOP_DETECTED) return 'misconfigured';
      return evidence.kind === 'limit' ? 'final' : 'refused';
    case 'unauthorised':
    case 'quota':
      return own.key ? 'misconfigured' : 'refused';
    case 'model_not_found':
      return own.key || own.model ? 'misconfigured' : 'refused';
    case 'rate_limited':
      return 'next';
    case 'idle_stall':
      return evidence.kind === 'clock' ? STALLS[evidence.clock] : 'silent';
    case 'connection_reset':
      if (evidence.kind === 'replica_lost') return 'ours';
      if (isSilent) return 'silent';
      return phase === 'connect' ? 'next' : 'again';
    case 'goaway':
      return isSilent ? 'silent' : 'again';
    case 'provider_5xx':
      // A target that names a time to retry won't answer before it.
      return retry_after_ms === undefined ? 'again' : 'next';
  }
}

/** An attempt that used its whole time was not silent. */
const STALLS = {
  connect: 'next',
  first_byte: 'silent',
  first_token: 'silent',
  idle: 'silent',
  progress: 'silent',
  attempt: 'again',
  hedge: 'outrun',
} as const;

/** How a target has performed within a run. Immutable: {@link afterFailure} returns the next standings. */
export interface Standing {
  /** As declared in the configuration; `undefined` if unknown. */
  readonly context_tokens: number | undefined;
  /** Failures that another attempt might not meet. */
  readonly failures: number;
  /** `last`: only if no other target is left. `never`: not again in this run. */
  readonly use: 'any' | 'last' | 'never';
  /** The request is too long for it, or for a target with at least its context. */
  readonly outgrown?: boolean;
  /** Do not ask it before this time. */
  readonly ready_at_ms: number;
  readonly death?: Death;
  /** Poison killed its attempts at this offset of the answer. */
  readonly stuck_at?: number;
}

export const newStanding = (context_tokens: number | undefined): Standing => ({
  context_tokens,
  failures: 0,
  use: 'any',
  ready_at_ms: Number.NEGATIVE_INFINITY,
});

interface TargetFailure {
  /** Index of the target. */
  readonly target: number;
  readonly reaction: Reaction;
  readonly interruption: Interruption;
  /** Characters delivered by the whole run so far. */
  readonly offset: number;
  /** Characters added by this attempt. */
  readonly added: number;
  /** Raw position in the answer at which the attempt died; `undefined` if it produced nothing. */
  readonly position: number | undefined;
  readonly ready_at_ms: number | undefined;
}

/** The standings after a target has failed. */
export function afterFailure(standings: readonly Standing[], failure: TargetFailure): readonly Standing[] {
  return standings.map((standing, index) => {
    if (index === failure.target) return failed(standing, failure);
    const known = standings[failure.target]?.context_tokens;
    return failure.reaction === 'outgrown' && !mayBeLarger(standing, known) ? outgrown(standing) : standing;
  });
}

/** The standings after the request has been compressed. */
export const afterCompression = (standings: readonly Standing[]): readonly Standing[] =>
  standings.map((standing) => ({ ...standing, outgrown: false }));

const outgrown = (standing: Standing): Standing => ({ ...standing, outgrown: true });

/** A target without a declared context gets one try. */
const mayBeLarger = ({ context_tokens }: Standing, known: number | undefined): boolean =>
  context_tokens === undefined || known === undefined || context_tokens > known;

function failed(standing: Standing, failure: TargetFailure): Standing {
  const { reaction, offset, added, position, ready_at_ms } = failure;
  switch (reaction) {
    case 'ours':
    case 'final':
      return standing;
    case 'outgrown':
      return outgrown(standing);
    case 'misconfigured':
    case 'refused':
      return { ...standing, use: 'never' };
  }
  const death = deathAfter(standing.death, { position });
  const silence = added > 0 ? 'last' : 'never';
  return {
    ...standing,
    failures: standing.failures + 1,
    ...(reaction === 'silent' && { use: silence }),
    ...(ready_at_ms !== undefined && { ready_at_ms }),
    ...(isPoison(death) && { stuck_at: offset }),
    ...(death && { death }),
  };
}

export interface Choice {
  readonly standings: readonly Standing[];
  /** By index: the circuit breaker prefers other targets. */
  readonly doubted: readonly boolean[];
  readonly offset: number;
  readonly now_ms: number;
  /** How often a failed target is asked again before the run moves on. */
  readonly same_target_retries: number;
  /** A target that asks for a longer wait is not asked again in this run. */
  readonly retry_after_max_ms: number;
  /** The run waits up to this long for a target, even if there are others. */
  readonly retry_after_wait_ms: number;
  /** Absent for the first attempt. */
  readonly failure?: Pick<TargetFailure, 'target' | 'reaction' | 'interruption'>;
}

/** Indices of the targets to ask, best first; empty if the run ends here. */
export function chooseTargets({ failure, ...choice }: Choice): readonly number[] {
  const { standings, doubted, same_target_retries, retry_after_wait_ms, now_ms } = choice;
  if (standings.length === 1) return failure && (isFinal(failure) || isTooLate(0, choice)) ? [] : [0];
  if (!failure) return ranked(choice);
  const { target, reaction } = failure;
  const same = standings[target];
  const others = standings.filter((_, index) => index !== target);
  if (reaction === 'final') return [];
  if (reaction === 'refused' && !others.some(({ failures }) => failures > 0)) return [];
  const all = ranked(choice, target).filter((position) => !isTooLate(position, choice));
  const wait_ms = same ? same.ready_at_ms - now_ms : 0;
  const mayPass = same && same.failures <= same_target_retries && !doubted[target];
  const isPassing = reaction === 'again' && wait_ms <= 0;
  const isWorthTheWait = reaction === 'next' && wait_ms > 0 && wait_ms <= retry_after_wait_ms;
  const sameFirst = reaction === 'ours' || (mayPass && (isPassing || isWorthTheWait));
  return sameFirst && all.includes(target) ? [target, ...all.filter((index) => index !== target)] : all;
}

/** With a single target, a permanent failure is final. */
const isFinal = ({ reaction, interruption }: NonNullable<Choice['failure']>): boolean =>
  reaction !== 'ours' && isPermanent(interruption.cause);

/** It asks for a longer wait than this run allows. */
const isTooLate = (
  position: number,
  { standings, now_ms, retry_after_max_ms }: Pick<Choice, 'standings' | 'now_ms' | 'retry_after_max_ms'>,
): boolean => (standings[position]?.ready_at_ms ?? now_ms) - now_ms > retry_after_max_ms;

function ranked(
  { standings, doubted, offset, now_ms }: Omit<Choice, 'failure'>,
  target?: number,
): readonly number[] {
  return standings
    .map(({ use, outgrown, stuck_at, ready_at_ms, failures }, position) => ({
      position,
      isOut: use === 'never' || outgrown || stuck_at === offset,
      /** Sort key: smaller is better, most important first. */
      merits: [
        Number(use === 'last'),
        Math.max(0, ready_at_ms - now_ms),
        failures + Number(doubted[position]),
        Number(position === target),
        position,
      ],
    }))
    .filter(({ isOut }) => !isOut)
    .sort((one, other) => compare(one.merits, other.merits))
    .map(({ position }) => position);
}

function compare(one: readonly number[], other: readonly number[]): number {
  const place = one.findIndex((merit, index) => merit !== other[index]);
  return Number(one[place]) - Number(other[place]);
}
