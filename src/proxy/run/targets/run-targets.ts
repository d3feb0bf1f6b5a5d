import type { Logger } from 'pino';
import type { RunId } from '../../../checkpoint/store.ts';
import { isKeyed, type RecoveryPolicy } from '../../../config/configuration.ts';
import { type Interruption, isPermanent } from '../../../interrupts/interruption.ts';
import type { Time } from '../../../lib/time.ts';
import type { Metrics } from '../../../metrics/metrics.ts';
import { type Budget, backoffMs } from '../../../plans/budget.ts';
import {
  afterCompression,
  afterFailure,
  type Choice,
  chooseTargets,
  newStanding,
  type Ownership,
  type Reaction,
  reactionTo,
  type Standing,
} from '../../../plans/target-choice.ts';
import type { RunTarget, Target } from '../../upstream/target.ts';
import { type HealthProbe, labelsOf } from '../../upstream/target-health.ts';
import type { AttemptReport } from '../context/attempt.ts';
import type { RunContext } from '../context/run-context.ts';

/** What the relay knows of an attempt that was interrupted. */
export interface InterruptedAttempt {
  readonly interruption: Interruption;
  readonly report: AttemptReport;
  /** The way of asking was at fault. */
  readonly isOurs: boolean;
  /** Characters delivered by the whole run up to now. */
  readonly offset: number;
}

/** Where a run may continue. */
export interface NextTargets {
  /** Those that may be asked for the rest, the best first. */
  readonly left: readonly RunTarget[];
  /** Position of the target that failed. */
  readonly target: number;
  /** The best is another one. */
  readonly moves: boolean;
  /** Those that are left ask for a longer wait than is allowed: then none is in `left`. */
  readonly isTooLate: boolean;
}

/** A provider that asks every run to stay away asks for no longer than this. */
const LEFT_ALONE_MAX_MS = 86_400_000;

/** Failures that speak against the target in every run. */
const DISCREDITING: ReadonlySet<Reaction> = new Set(['again', 'next', 'silent', 'misconfigured']);

/**
 * The targets of one run: how each has done in it so far, and which is to be asked next. What other runs should know
 * of a target is passed on to its health.
 */
export class RunTargets {
  readonly #targets: readonly RunTarget[];
  readonly #recovery: RecoveryPolicy;
  readonly #time: Time;
  readonly #random: () => number;
  readonly #log: Logger;
  readonly #run: RunId;
  readonly #metrics: Metrics;
  #standings: readonly Standing[];
  /** Position of the target that is asked, or was last. */
  #current = 0;
  #inquiry: HealthProbe | undefined;
  #told: ReportedFailure | undefined;
  #isCompressed = false;

  /** `targets`: in order of preference, at least one. */
  constructor(run: RunId, targets: readonly RunTarget[], context: RunContext) {
    const { configuration, time, random, log, metrics } = context;
    this.#targets = targets;
    this.#recovery = configuration.recovery;
    this.#time = time;
    this.#random = random;
    this.#log = log;
    this.#run = run;
    this.#metrics = metrics;
    this.#standings = this.#targets.map(({ context_tokens }) => newStanding(context_tokens));
  }

  /** The one that is asked, or was last. */
  get current(): RunTarget {
    return this.#at(this.#current);
  }

  /** Of {@link current}. */
  get position(): number {
    return this.#current;
  }

  /** There is another one to go to if the one that is asked lets the client wait. */
  get hasStandIn(): boolean {
    const { standings, now_ms, retry_after_max_ms } = this.#situation;
    return standings.some(
      ({ use, outgrown, ready_at_ms }, position) =>
        position !== this.#current &&
        use === 'any' &&
        !outgrown &&
        ready_at_ms - now_ms <= retry_after_max_ms,
    );
  }

  /** Chooses the one to begin with. */
  begin(): RunTarget {
    const [best = 0] = chooseTargets({ ...this.#situation, offset: 0 });
    return this.ask(this.#at(best));
  }

  /** Continues with the target that a lost replica had asked. */
  resume({ name, model }: Target): RunTarget {
    const position = this.#targets.findIndex((target) => target.name === name && target.model === model);
    this.#current = Math.max(position, 0);
    return this.current;
  }

  /** It is asked next. Until its attempt is over, no other run tests whether it is up. */
  ask(target: RunTarget): RunTarget {
    this.release();
    this.#current = this.#targets.indexOf(target);
    this.#inquiry = target.health?.ask(this.#time.now());
    return target;
  }

  /** Others than the one that is asked, which may be asked beside it now, the best first. `offset`: as in an {@link InterruptedAttempt}. */
  besides(offset: number): readonly RunTarget[] {
    const situation = this.#situation;
    const { standings, doubted, now_ms } = situation;
    return chooseTargets({ ...situation, offset })
      .filter((position) => {
        const { use, ready_at_ms = now_ms } = standings[position] ?? {};
        return position !== this.#current && use === 'any' && ready_at_ms <= now_ms && !doubted[position];
      })
      .map((position) => this.#at(position));
  }

  /** It is asked beside the one that lets the client wait. The caller must end what is returned. */
  askBeside(target: RunTarget): HealthProbe | undefined {
    return target.health?.ask(this.#time.now());
  }

  /** A target has failed that was asked beside the one under way: that is no failure of the run. */
  failedBeside(
    target: RunTarget,
    inquiry: HealthProbe | undefined,
    interruption: Interruption,
    silent_ms: number,
  ): void {
    const reaction = reactionTo(interruption, ownershipOf(target), silent_ms);
    if (DISCREDITING.has(reaction)) this.#discredit(target, inquiry, interruption);
  }

  /** The attempt has produced something, or has ended well without output. */
  answered(): void {
    if (!this.#inquiry?.answered(this.#time.now())) return;
    this.#log.info(this.#label(this.current), 'target is up');
    this.#metrics.targetTransitions.inc({ ...labelsOf(this.current), state: 'closed' });
  }

  /** The attempt was interrupted. Returns the targets where the run may continue. */
  after({ interruption, report, isOurs, offset }: InterruptedAttempt): NextTargets {
    const target = this.#current;
    const asked = this.current;
    const reaction = isOurs ? 'ours' : reactionTo(interruption, ownershipOf(asked), report.silent_ms);
    this.#learn(reaction, interruption);
    this.#told = moreInformative(this.#told, {
      interruption,
      report,
      reaction,
      target: asked,
      isCompressed: this.#isCompressed,
    });
    const ready_at_ms = this.#readyAt(interruption);
    const { added, position } = report;
    const failure = { target, reaction, interruption, offset, added, position, ready_at_ms };
    this.#standings = afterFailure(this.#standings, failure);
    const choice: Choice = { ...this.#situation, offset, failure };
    const chosen = chooseTargets(choice);
    const moves = chosen[0] !== undefined && chosen[0] !== target;
    const isPatient = { ...choice, retry_after_max_ms: Number.POSITIVE_INFINITY };
    const isTooLate = chosen.length === 0 && chooseTargets(isPatient).length > 0;
    return { left: chosen.map((left) => this.#at(left)), target, moves, isTooLate };
  }

  /** The request is shorter now. Returns the targets that may be asked, first the one for which it was too long last. */
  compressed(offset: number): readonly RunTarget[] {
    this.#isCompressed = true;
    this.#standings = afterCompression(this.#standings);
    const { interruption } = this.told;
    const failure = { target: this.#current, reaction: 'ours', interruption } as const;
    return chooseTargets({ ...this.#situation, offset, failure }).map((position) => this.#at(position));
  }

  /** The failure that the client gets if nothing is left, and the provider's own answer to it. */
  get told(): ReportedFailure {
    if (!this.#told) throw new Error('no attempt has failed yet');
    return this.#told;
  }

  /**
   * How long to wait before a target is asked after the current one: a target that is up, and has not failed in this
   * run, need not be spared.
   */
  wait_ms(next: RunTarget, budget: Budget, retry_after_ms: number | undefined): number {
    const position = this.#targets.indexOf(next);
    if (position === this.#current) return this.#backoff_ms(budget, retry_after_ms);
    const { standings, doubted, now_ms } = this.#situation;
    const { ready_at_ms = now_ms, failures = 0 } = standings[position] ?? {};
    if (ready_at_ms > now_ms) return this.#backoff_ms(budget, ready_at_ms - now_ms);
    return failures === 0 && !doubted[position] ? 0 : this.#backoff_ms(budget, undefined);
  }

  /** Nothing more is to be learnt from the attempt. */
  release(): void {
    this.#inquiry?.end();
    this.#inquiry = undefined;
  }

  /** Shares with all runs what the failure shows about the target. */
  #learn(reaction: Reaction, interruption: Interruption): void {
    if (DISCREDITING.has(reaction)) this.#discredit(this.current, this.#inquiry, interruption);
    if (reaction === 'outgrown' || reaction === 'refused') this.answered();
    // If there is no other target, the client gets the failure.
    if (reaction === 'misconfigured' && this.#targets.length > 1) {
      const { cause, status } = interruption;
      this.#log.error(
        { ...this.#label(this.current), cause, status },
        'the configuration of a target is at fault',
      );
    }
    this.release();
  }

  #discredit(target: RunTarget, inquiry: HealthProbe | undefined, interruption: Interruption): void {
    const { health, upstream } = target;
    const isLimit = interruption.cause === 'rate_limited';
    // A refusal of one client's key does not concern another's.
    if (isLimit && !isKeyed(upstream)) return;
    // A server that sends GOAWAY is replaced by another.
    if (interruption.cause === 'goaway') return;
    const ready_at_ms = this.#readyAt(interruption);
    if (ready_at_ms !== undefined)
      health?.leaveAlone(Math.min(ready_at_ms, this.#time.now() + LEFT_ALONE_MAX_MS));
    if (isLimit && ready_at_ms !== undefined) return;
    if (!inquiry?.failed(this.#time.now())) return;
    this.#log.warn(this.#label(target), 'target is down');
    this.#metrics.targetTransitions.inc({ ...labelsOf(target), state: 'open' });
  }

  /** For the log. */
  #label({ name: upstream, model }: RunTarget): object {
    return { run: this.#run, upstream, model };
  }

  #at(position: number): RunTarget {
    const target = this.#targets[position];
    if (!target) throw new Error(`the run has no target ${position}`);
    return target;
  }

  #backoff_ms(budget: Budget, retry_after_ms: number | undefined): number {
    return backoffMs(budget, this.#recovery, retry_after_ms, this.#random());
  }

  #readyAt({ retry_after_ms }: Interruption): number | undefined {
    if (retry_after_ms === undefined) return undefined;
    return this.#time.now() + retry_after_ms;
  }

  /** What this run knows of its targets and what all do, now. */
  get #situation(): Omit<Choice, 'offset' | 'failure'> {
    const now_ms = this.#time.now();
    const { same_target_retries, retry_after_max_s, retry_after_wait_s } = this.#recovery;
    const standings = this.#standings.map((standing, position) => {
      const { ready_at_ms } = this.#targets[position]?.health ?? standing;
      return { ...standing, ready_at_ms: Math.max(standing.ready_at_ms, ready_at_ms) };
    });
    const doubted = this.#targets.map(({ health }) => health?.isDoubted(now_ms) ?? false);
    const retry_after_max_ms = retry_after_max_s * 1000;
    const retry_after_wait_ms = retry_after_wait_s * 1000;
    return { standings, doubted, now_ms, same_target_retries, retry_after_max_ms, retry_after_wait_ms };
  }
}

const ownershipOf = ({ upstream, model }: Target): Ownership => ({
  key: isKeyed(upstream),
  model: model !== undefined,
});

/** A failure that the client may have to get. */
export interface ReportedFailure {
  readonly interruption: Interruption;
  readonly report: AttemptReport;
  readonly target: Target;
  readonly reaction: Reaction;
  /** What the target was asked is not what the client has asked, but shorter. */
  readonly isCompressed?: boolean;
}

/**
 * Which of two failures the client gets when nothing is left. A failed request for the rest, or a failure of another
 * target, must not mask the failure that led to it.
 */
export function moreInformative(before: ReportedFailure | undefined, now: ReportedFailure): ReportedFailure {
  const { interruption, reaction, target, isCompressed } = now;
  if (!before) return now;
  // Of what a target answers, the last is the client's.
  const same = target === before.target && !isCompressed ? { ...before, report: now.report } : before;
  if (reaction === 'ours' && interruption.evidence.kind !== 'replica_lost') return same;
  if (!isPermanent(interruption.cause)) return now;
  // The operator's fault does not concern the client; a final failure does.
  const isFinal = reaction === 'final' && target !== before.target;
  return before.reaction === 'misconfigured' || isFinal ? now : same;
}
