import { type Cause, type Interruption, withoutMessage } from '../../interrupts/interruption.ts';
import { attemptWork } from '../../plans/budget.ts';
import type { Plan } from '../../plans/decide.ts';
import type { AttemptSegment, Delta, Usage } from '../../plans/delta.ts';
import type { Splice } from '../../plans/splice.ts';
import { type PromptSize, tokenCount, tokensOfDeltas } from '../../plans/tokens.ts';
import { deliveredTokens, logicalUsage, repaidTokens, usageByUpstream } from '../../plans/usage-ledger.ts';
import type { Advisory } from '../wires/common/advisory.ts';
import { AttemptLedger } from './attempt-ledger.ts';
import type { AttemptReport } from './context/attempt-report.ts';
import type { Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import type { RunObservation } from './context/run-observer.ts';
import type { PlannedAttempt } from './next-attempt/recovery-request.ts';
import type { RestoredRun } from './restored-run.ts';

/** A recovery that is under way: from the interruption to the first new content. */
interface Recovery {
  readonly plan: 'R1' | 'R3' | 'R4';
  readonly cause: Cause;
  /** The upstream that was interrupted. */
  readonly from: string;
  readonly interrupted_at_ms: number;
}

type Recovered = Extract<Advisory, { readonly type: 'Recovered' }>;

/** The attempts of one run: the target and mode of each, what it cost, and the silence that the client felt. */
export class RunAttempts {
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #watch: RunObservation | undefined;
  readonly #ledgers: AttemptLedger[] = [];
  /** The last of them. */
  #ledger: AttemptLedger | undefined;
  /** Those of other replicas, but for the one that stands for them all. */
  readonly #before: number;
  /** When this replica began with the run, by the clock that only runs forward. */
  readonly started_ms: number;
  #content_ms: number | undefined;
  #recovery: Recovery | undefined;
  /** Joins the attempt under way, or the last one, to what was delivered, if there is anything to join. */
  #splice: Splice | undefined;
  /** The attempt under way, or the last one. */
  #segment: AttemptSegment | undefined;

  /** `restored`: what other replicas made of the run. */
  constructor(
    run: Run,
    context: RunContext,
    watch: RunObservation | undefined,
    restored: RestoredRun | undefined,
  ) {
    this.#run = run;
    this.#context = context;
    this.#watch = watch;
    this.started_ms = context.time.now();
    // A run that sent nothing may have had attempts, but the journal shows none of them.
    const known = restored && restored.seq > 0 ? restored : undefined;
    this.#before = known ? known.attempts - 1 : 0;
    if (!known) return;
    this.#add(known.ledger);
    this.#content_ms = this.started_ms;
  }

  /** Upstream requests made so far, as far as is known. */
  get count(): number {
    return this.#before + this.#ledgers.length;
  }

  /** The upstream that is asked, or was asked last. */
  get upstream(): string {
    return this.#segment?.upstream ?? this.#run.target.name;
  }

  /** `segment`: what the journal is to know of it. */
  begin(planned: PlannedAttempt): { readonly ledger: AttemptLedger; readonly segment: AttemptSegment } {
    const ledger = new AttemptLedger(planned);
    this.#add(ledger);
    const segment = this.#segmentOf(planned);
    this.#segment = segment;
    this.#splice = planned.mode === 'restart' ? undefined : planned.splice;
    return { ledger, segment };
  }

  /** Something that the attempt under way said has become part of the run. */
  keep(delta: Delta): void {
    this.#ledger?.keep(delta);
  }

  /** Counts how an attempt ended, by which interruption if any, and whether the plan that led to it worked. */
  end(
    { target, mode, splice }: PlannedAttempt,
    plan: Plan | undefined,
    report: AttemptReport,
    interruption?: Interruption,
  ): void {
    const { metrics } = this.#context;
    const upstream = target.name;
    const outcome = interruption ? 'interrupted' : 'complete';
    metrics.attempts.inc({ upstream, outcome });
    if (interruption)
      metrics.interruptions.inc({ cause: interruption.cause, phase: interruption.phase, upstream });
    // Where nothing is repeated first, a seam is open before anything has come.
    const isJoined = splice?.isOpen && (report.added > 0 || report.ending !== undefined);
    if (isJoined) metrics.seams.inc({ kind: splice.seam });
    if (plan) {
      const worked = report.ending || report.added > 0;
      metrics.recoveries.inc({ plan: plan.kind, mode, outcome: worked ? 'succeeded' : 'failed' });
    }
    const { added, usage, answer_id } = report;
    this.#watch?.attemptEnded({
      outcome,
      added,
      ...(isJoined && { seam: splice.seam }),
      ...(interruption && { interruption: withoutMessage(interruption) }),
      ...(usage && { usage }),
      ...(answer_id !== undefined && { answer_id }),
    });
  }

  /** From now until new content comes, the client waits for a recovery. */
  beginRecovery(plan: Recovery['plan'], cause: Cause): void {
    const { from = this.upstream, interrupted_at_ms = this.#context.time.wall() } = this.#recovery ?? {};
    this.#recovery = { plan, cause, from, interrupted_at_ms };
  }

  /** The client waits for a recovery. */
  get isRecovering(): boolean {
    return this.#recovery !== undefined;
  }

  /** Since when, by the wall clock, nothing has come of the answer: since now, unless that is being recovered from. */
  get interrupted_at_ms(): number {
    return this.#recovery?.interrupted_at_ms ?? this.#context.time.wall();
  }

  /** New content has come. Returns the advisory of the recovery that it ends, if it ends one. */
  recovered(): Recovered | undefined {
    if (!this.#recovery || !this.#segment) return undefined;
    const { plan, cause, from } = this.#recovery;
    const { metrics, log, time } = this.#context;
    const gap_ms = time.now() - (this.#content_ms ?? this.started_ms);
    this.#recovery = undefined;
    metrics.recoveryGap.observe(metrics.ofRun(this.#run.id, gap_ms / 1000));
    const { upstream } = this;
    const { mode, model } = this.#segment;
    const seam = this.#splice?.seam;
    const told = {
      plan,
      mode,
      ...(seam && { seam }),
      cause,
      attempt: this.count,
      gap_ms: Math.round(gap_ms),
    };
    log.info({ run: this.#run.id, upstream, ...(model !== undefined && { model }), ...told }, 'recovered');
    return { type: 'Recovered', ...told, ...(upstream !== from && { upstream }) };
  }

  /** Content was shown at this time. */
  contentAt(now_ms: number): void {
    if (this.#content_ms === undefined) {
      const { metrics } = this.#context;
      metrics.timeToFirstToken.observe(metrics.ofRun(this.#run.id, (now_ms - this.started_ms) / 1000));
    }
    this.#content_ms = now_ms;
  }

  /** Tokens of the answer that the client has. */
  get delivered_tokens(): number {
    return deliveredTokens(this.#ledgers);
  }

  /** Tokens that all of them have generated, new to the client or not, each counted as the {@link attemptWork least}. */
  get work_tokens(): number {
    return this.#ledgers.reduce((sum, { reported, arrived: { deltas, characters } }) => {
      const generated = reported?.completion_tokens ?? 0;
      return sum + attemptWork(Math.max(generated, tokensOfDeltas(deltas, characters)));
    }, 0);
  }

  /** What all of them came to as one answer; `undefined` where what the provider reports, or leaves out, stands. */
  usage(endedWell: boolean, promptSize: () => PromptSize): Usage | undefined {
    // One answer that ended as it should speaks for itself, by its silence as well.
    const isOne = this.#ledgers.slice(1).every(({ mode }) => mode === 'resume');
    return isOne && endedWell ? undefined : logicalUsage(this.#ledgers, promptSize());
  }

  /** Tells the operator what the run cost. */
  settle(): void {
    const { metrics, log } = this.#context;
    const { id, targets } = this.#run;
    if (targets) log.info({ run: id, usage: usageByUpstream(this.#ledgers) }, 'usage');
    for (const { reported } of this.#ledgers) {
      metrics.tokens.inc({ kind: 'prompt' }, tokenCount(reported?.prompt_tokens));
      metrics.tokens.inc({ kind: 'completion' }, tokenCount(reported?.completion_tokens));
    }
    metrics.tokens.inc({ kind: 'repaid' }, repaidTokens(this.#ledgers));
  }

  #add(ledger: AttemptLedger): void {
    this.#ledgers.push(ledger);
    this.#ledger = ledger;
  }

  #segmentOf({ target: { name: upstream, model }, mode, compressed }: PlannedAttempt): AttemptSegment {
    const { plan, cause } = this.#recovery ?? {};
    return {
      attempt: this.count,
      upstream,
      ...(model !== undefined && model !== this.#run.request.model && { model }),
      mode,
      ...(plan && { plan }),
      ...(cause && { cause }),
      ...(compressed && { compressed }),
    };
  }
}
