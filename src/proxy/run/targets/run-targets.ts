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

/** The facts about an interrupted attempt. */
export interface InterruptedAttempt {
  readonly interruption: Interruption;
  readonly report: AttemptReport;
  /** The failure is due to how we asked, not to the target. */
  readonly isOurs: boolean;
  /** Characters delivered by the whole run so far. */
  readonly offset: number;
}

/** The targets where a run may continue. */
export interface NextTargets {
  /** Targets that may be asked for the rest, best first. */
  readonly left: readonly RunTarget[];
  /** Index of the failed target. */
  readonly target: number;
  /** The best target is a different one. */
  readonly moves: boolean;
  /** `left` is empty only because the remaining targets ask for too long a wait. */
  readonly isTooLate: boolean;
}

/** Upper limit for a wait that a provider imposes on all runs. */
const LEFT_ALONE_MAX_MS = 86_400_000;

/** Reactions that count against the target in all runs. */
const DISCREDITING: ReadonlySet<Reaction> = new Set(['again', 'next', 'silent', 'misconfigured']);

/**
 * The targets of one run, their standings, and the choice of the next one. Facts that matter to other runs go to the
 * target's health.
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
  /** Index of the current or last target. */
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

  /** The current or last target. */
  get current(): RunTarget {
    return this.#at(this.#current);
  }

  /** The index of {@link current}. */
  get position(): number {
    return this.#current;
  }

  /** Whether another target could replace the current one if it stays silent. */
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

  /** Chooses the first target. */
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

  /** Makes it the current target. Until its attempt ends, no other run probes its recovery. */
  ask(target: RunTarget): RunTarget {
    this.release();
    this.#current = this.#targets.indexOf(target);
    this.#inquiry = target.health?.ask(this.#time.now());
    return target;
  }

  /**
   * Targets that may be asked in addition to the current one, best first. `offset`: as in {@link InterruptedAttempt}.
   */
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

  /** Asks a target in addition to the current, silent one. The caller must end the returned probe. */
  askBeside(target: RunTarget): HealthProbe | undefined {
    return target.health?.ask(this.#time.now());
  }

  /** Records the failure of an additional target, which is no failure of the run. */
  failedBeside(
    target: RunTarget,
    inquiry: HealthProbe | undefined,
    interruption: Interruption,
    silent_ms: number,
  ): void {
    const reaction = reactionTo(interruption, ownershipOf(target), silent_ms);
    if (DISCREDITING.has(reaction)) this.#discredit(target, inquiry, interruption);
  }

  /** Records that the attempt produced output, or ended well without any. */
  answered(): void {
    if (!this.#inquiry?.answered(this.#time.now())) return;
    this.#log.info(this.#label(this.current), 'target is up');
    this.#metrics.targetTransitions.inc({ ...labelsOf(this.current), state: 'closed' });
  }

  /** Records an interruption. Returns the targets where the run may continue. */
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

  /**
   * Records that the request was compressed. Returns the targets to ask, beginning with the last one that it was too
   * long for.
   */
  compressed(offset: number): readonly RunTarget[] {
    this.#isCompressed = true;
    this.#standings = afterCompression(this.#standings);
    const { interruption } = this.told;
    const failure = { target: this.#current, reaction: 'ours', interruption } as const;
    return chooseTargets({ ...this.#situation, offset, failure }).map((position) => this.#at(position));
  }

  /** The failure to report to the client if nothing is left, with the provider's own response. */
  get told(): ReportedFailure {
    if (!this.#told) throw new Error('no attempt has failed yet');
    return this.#told;
  }

  /**
   * How long to wait before the next target, in milliseconds. A target that is up and has not failed in this run needs
   * no delay.
   */
  wait_ms(next: RunTarget, budget: Budget, retry_after_ms: number | undefined): number {
    const position = this.#targets.indexOf(next);
    if (position === this.#current) return this.#backoff_ms(budget, retry_after_ms);
    const { standings, doubted, now_ms } = this.#situation;
    const { ready_at_ms = now_ms, failures = 0 } = standings[position] ?? {};
    if (ready_at_ms > now_ms) return this.#backoff_ms(budget, ready_at_ms - now_ms);
    return failures === 0 && !doubted[position] ? 0 : this.#backoff_ms(budget, undefined);
  }

  /** Ends the probe of the current attempt, if any. */
  release(): void {
    this.#inquiry?.end();
    this.#inquiry = undefined;
  }

  /** Shares the failure's implications for the target with all runs. */
  #learn(reaction: Reaction, interruption: Interruption): void {
    if (DISCREDITING.has(reaction)) this.#discredit(this.current, this.#inquiry, interruption);
    if (reaction === 'outgrown' || reaction === 'refused') this.answered();
    // Without another target, the client gets the failure instead.
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
    // A rate limit on one client's key does not affect other clients.
    if (isLimit && !isKeyed(upstream)) return;
    // Another server takes the place of one that sends GOAWAY.
    if (interruption.cause === 'goaway') return;
    const ready_at_ms = this.#readyAt(interruption);
    if (ready_at_ms !== undefined)
      health?.leaveAlone(Math.min(ready_at_ms, this.#time.now() + LEFT_ALONE_MAX_MS));
    if (isLimit && ready_at_ms !== undefined) return;
    if (!inquiry?.failed(this.#time.now())) return;
    this.#log.warn(this.#label(target), 'target is down');
    this.#metrics.targetTransitions.inc({ ...labelsOf(target), state: 'open' });
  }

  /** Log fields. */
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

  /** This run's standings combined with the shared health. */
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

/** A failure that may be reported to the client. */
export interface ReportedFailure {
  readonly interruption: Interruption;
  readonly report: AttemptReport;
  readonly target: Target;
  readonly reaction: Reaction;
  /** The target received a compressed request, not the client's original. */
  readonly isCompressed?: boolean;
}

/**
 * Which of two failures to report to the client. A failed continuation, or a failure of another target, must not hide
 * the original failure.
 */
export function moreInformative(before: ReportedFailure | undefined, now: ReportedFailure): ReportedFailure {
  const { interruption, reaction, target, isCompressed } = now;
  if (!before) return now;
  // Of one target's responses, the last one is reported.
  const same = target === before.target && !isCompressed ? { ...before, report: now.report } : before;
  if (reaction === 'ours' && interruption.evidence.kind !== 'replica_lost') return same;
  if (!isPermanent(interruption.cause)) return now;
  // The operator's mistakes don't concern the client; a final failure does.
  const isFinal = reaction === 'final' && target !== before.target;
  return before.reaction === 'misconfigured' || isFinal ? now : same;
}
