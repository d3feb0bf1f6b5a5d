import { type Interruption, isPermanent } from '../interrupts/interruption.ts';
import { type Failure, repeats } from './budget.ts';

/** The status with which a Holdfast refuses a request that it has sent itself. */
const LOOP_DETECTED = 508;

/**
 * What the failure of one target means for where its request goes next.
 *
 * `again`: it may have been a passing one. `next`: another target first. `silent`: it let the client wait, which must
 * not happen twice. `outgrown`: only a larger context will do. `misconfigured`: the operator's fault, not the
 * client's. `refused`: the client's, unless others took the request. `final`: no other target may be asked.
 * `ours`: nothing is wrong with the target.
 */
export type Reaction =
  | 'again'
  | 'next'
  | 'silent'
  | 'outgrown'
  | 'misconfigured'
  | 'refused'
  | 'final'
  | 'ours';

/** What of a target is the operator's doing. */
export interface Ownership {
  /** A key of its own is sent, not the client's. */
  readonly key: boolean;
  /** The model is asked for by a name of its own, not the client's. */
  readonly model: boolean;
}

export function reactionTo(interruption: Interruption, own: Ownership): Reaction {
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
      return phase === 'connect' ? 'next' : 'again';
    case 'goaway':
      return 'again';
    case 'provider_5xx':
      // One that says when to come back has said that it is of no use before.
      return retry_after_ms === undefined ? 'again' : 'next';
  }
}

/** An answer that took its whole time was no silence. */
const STALLS = {
  connect: 'next',
  first_byte: 'silent',
  first_token: 'silent',
  idle: 'silent',
  progress: 'silent',
  attempt: 'again',
} as const;

/** How a target of a run has done in it so far. A value: {@link afterFailure} returns the next ones. */
export interface Standing {
  /** Declared; nothing is known of the others. */
  readonly context_tokens: number | undefined;
  /** Failures that another attempt may not meet again. */
  readonly failures: number;
  /** `last`: only when no other is left. `never`: not again in this run. */
  readonly use: 'any' | 'last' | 'never';
  /** The request is too long for it, or for one that takes no less. */
  readonly outgrown?: boolean;
  /** It has asked not to be asked before. */
  readonly ready_at_ms: number;
  readonly last?: Failure;
  /** It failed in the same way twice at this offset of the answer, and got nowhere. */
  readonly stuck_at?: number;
}

export const newStanding = (context_tokens: number | undefined): Standing => ({
  context_tokens,
  failures: 0,
  use: 'any',
  ready_at_ms: Number.NEGATIVE_INFINITY,
});

export interface TargetFailure {
  /** Position of the target. */
  readonly target: number;
  readonly reaction: Reaction;
  readonly interruption: Interruption;
  /** Characters delivered by the whole run up to now. */
  readonly offset: number;
  /** Characters that the attempt added. */
  readonly added: number;
  readonly ready_at_ms: number | undefined;
}

/** How the targets stand after one of them has failed. */
export function afterFailure(standings: readonly Standing[], failure: TargetFailure): readonly Standing[] {
  return standings.map((standing, index) => {
    if (index === failure.target) return failed(standing, failure);
    const known = standings[failure.target]?.context_tokens;
    return failure.reaction === 'outgrown' && !isLarger(standing, known) ? outgrown(standing) : standing;
  });
}

/** How they stand once the request has become shorter. */
export const afterCompression = (standings: readonly Standing[]): readonly Standing[] =>
  standings.map((standing) => ({ ...standing, outgrown: false }));

const outgrown = (standing: Standing): Standing => ({ ...standing, outgrown: true });

/** Whoever took the request before, and failed at it for another reason, is not known to be too small. */
function isLarger({ context_tokens, failures }: Standing, known: number | undefined): boolean {
  if (context_tokens === undefined || known === undefined) return failures > 0;
  return context_tokens > known;
}

function failed(standing: Standing, failure: TargetFailure): Standing {
  const { reaction, interruption, offset, added, ready_at_ms } = failure;
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
  const { cause, phase } = interruption;
  const last: Failure = { cause, phase, offset, advanced: added > 0 };
  const silence = added > 0 ? 'last' : 'never';
  return {
    ...standing,
    failures: standing.failures + 1,
    ...(reaction === 'silent' && { use: silence }),
    ...(ready_at_ms !== undefined && { ready_at_ms }),
    ...(repeats(standing.last, last) && { stuck_at: offset }),
    last,
  };
}

export interface Choice {
  readonly standings: readonly Standing[];
  /** By position: the circuit breaker would have others asked. */
  readonly doubted: readonly boolean[];
  readonly offset: number;
  readonly now_ms: number;
  /** How often a target that failed is asked again before another one is. */
  readonly same_target_retries: number;
  /** Absent for the first attempt. */
  readonly failure?: Pick<TargetFailure, 'target' | 'reaction' | 'interruption'>;
}

/** Positions of the targets that may be asked now, the best one first; none when it ends here. */
export function chooseTargets({ failure, ...choice }: Choice): readonly number[] {
  const { standings, doubted, same_target_retries, now_ms } = choice;
  if (standings.length === 1) return failure && isFinal(failure) ? [] : [0];
  if (!failure) return ranked(choice);
  const { target, reaction } = failure;
  const same = standings[target];
  const others = standings.filter((_, index) => index !== target);
  if (reaction === 'final') return [];
  if (reaction === 'refused' && !others.some(({ failures }) => failures > 0)) return [];
  const all = ranked(choice, target);
  const mayPass = same && same.failures <= same_target_retries && same.ready_at_ms <= now_ms;
  const sameFirst = reaction === 'ours' || (reaction === 'again' && mayPass && !doubted[target]);
  return sameFirst && all.includes(target) ? [target, ...all.filter((index) => index !== target)] : all;
}

/** With one target, what is permanent is final. */
const isFinal = ({ reaction, interruption }: NonNullable<Choice['failure']>): boolean =>
  reaction !== 'ours' && isPermanent(interruption.cause);

function ranked(
  { standings, doubted, offset, now_ms }: Omit<Choice, 'failure'>,
  target?: number,
): readonly number[] {
  return standings
    .map(({ use, outgrown, stuck_at, ready_at_ms, failures }, position) => ({
      position,
      isOut: use === 'never' || outgrown || stuck_at === offset,
      /** What is compared, the most important first; the smaller is the better. */
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
