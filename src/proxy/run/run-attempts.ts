import { type Cause, type Interruption, withoutMessage } from '../../interrupts/interruption.ts';
import { attemptWork } from '../../plans/budget.ts';
import type { Plan } from '../../plans/decide.ts';
import type { AttemptSegment, Delta, Usage } from '../../plans/delta.ts';
import type { Splice } from '../../plans/splice.ts';
import {
  type AttemptUsage,
  type Count,
  deliveredTokens,
  type PromptSize,
  repaidTokens,
  sumOf,
  tokenCount,
  tokensIn,
} from '../../plans/tokens.ts';
import { logicalUsage, usageByUpstream } from '../../plans/usage-ledger.ts';
import type { Advisory } from '../wires/common/wire.ts';
import type { AttemptReport, PlannedAttempt } from './context/attempt.ts';
import type { Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import type { RunObservation } from './context/run-observer.ts';
import type { RestoredRun } from './restored-run.ts';

/** A recovery in progress: from the interruption to the first new content. */
interface Recovery {
  readonly plan: 'R1' | 'R3' | 'R4';
  readonly cause: Cause;
  /** The interrupted upstream. */
  readonly from: string;
  readonly interrupted_at_ms: number;
}

/** How many interruptions the log entry at the end of a run repeats. */
const INTERRUPTIONS_MAX = 10;

/** A run's attempts, summarised for the log. */
interface AttemptsAccount {
  /** Upstream requests. */
  readonly attempts: number;
  /** The first interruptions; absent if there were none. */
  readonly interruptions?: readonly LoggedInterruption[];
  /** The longest silence for the client during a recovery, in milliseconds. */
  readonly gap_ms?: number;
}

interface LoggedInterruption extends Pick<Interruption, 'cause' | 'phase' | 'status'> {
  readonly upstream: string;
  readonly evidence: Interruption['evidence']['kind'];
}

type Recovered = Extract<Advisory, { readonly type: 'Recovered' }>;

/** Deltas of one kind: how many arrived, how many characters, and how many of those became part of the run. */
interface Tally {
  deltas: number;
  came: number;
  kept: number;
}

/** The contribution of one attempt, counted while it runs. */
export interface AttemptTally extends Pick<PlannedAttempt, 'mode' | 'added_messages' | 'added_reasoning'> {
  /** Unknown for attempts made by another replica. */
  readonly upstream?: string;
  reported?: Usage;
  readonly text: Tally;
  readonly reasoning: Tally;
  /** By the run's index; cancelled calls are removed. */
  calls?: Map<number, Tally>;
}

/** The attempts of one run: their targets, modes and costs, and the silence for the client. */
export class RunAttempts {
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #watch: RunObservation | undefined;
  readonly #tallies: AttemptTally[] = [];
  /** The last tally. */
  #tally: AttemptTally | undefined;
  /** The number of attempts on other replicas, minus the one whose tally represents them all. */
  readonly #before: number;
  /** When this replica began the run, on the monotonic clock. */
  readonly started_ms: number;
  #content_ms: number | undefined;
  #recovery: Recovery | undefined;
  #interruptions: LoggedInterruption[] | undefined;
  #gap_ms: number | undefined;
  /** Joins the current or last attempt to the delivered part, if there is one. */
  #splice: Splice | undefined;
  /** The current or last attempt. */
  #segment: AttemptSegment | undefined;

  /** `restored`: the run's state from other replicas. */
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
    // A run without events may have had attempts, but the journal contains none.
    const known = restored && restored.seq > 0 ? restored : undefined;
    this.#before = known ? known.attempts - 1 : 0;
    if (!known) return;
    this.#add(known.tally);
    this.#content_ms = this.started_ms;
  }

  /** Known upstream requests so far. */
  get count(): number {
    return this.#before + this.#tallies.length;
  }

  /** The current or last upstream. */
  get upstream(): string {
    return this.#segment?.upstream ?? this.#run.target.name;
  }

  /** Returns the attempt's entry for the journal. */
  begin(planned: PlannedAttempt): AttemptSegment {
    const { target, mode, added_messages, added_reasoning = 0, splice } = planned;
    this.#add(newTally({ upstream: target.name, mode, added_messages, added_reasoning }));
    this.#splice = mode === 'restart' ? undefined : splice;
    this.#segment = this.#segmentOf(planned);
    return this.#segment;
  }

  /** Counts a delta from the provider. */
  arrive(delta: Delta): void {
    if (this.#tally) count(this.#tally, delta, 'came');
  }

  /** Counts a delta of the current attempt that became part of the run. */
  keep(delta: Delta): void {
    if (this.#tally) count(this.#tally, delta, 'kept');
  }

  /** Removes this many trailing UTF-16 units of the last attempt's reasoning from the run. */
  dropReasoning(characters: number): void {
    if (this.#tally) this.#tally.reasoning.kept -= characters;
  }

  /** The provider's output in the last attempt, whether or not it became part of the run. */
  get arrived(): Count {
    return sumOf(this.#tally ? arrivedOf(this.#tally) : []);
  }

  /** The provider's report for the last attempt. */
  get reported(): Usage | undefined {
    return this.#tally?.reported;
  }

  /** Records the end of an attempt, its interruption if any, and whether the plan that led to it worked. */
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
    if (interruption) {
      metrics.interruptions.inc({ cause: interruption.cause, phase: interruption.phase, upstream });
      this.#interruptions ??= [];
      if (this.#interruptions.length < INTERRUPTIONS_MAX)
        this.#interruptions.push(loggedInterruption(interruption, upstream));
    }
    // Without repeated text, a seam is open before anything has arrived.
    const isJoined = splice?.isOpen && (report.added > 0 || report.ending !== undefined);
    if (isJoined) metrics.seams.inc({ kind: splice.seam });
    if (plan) {
      const worked = report.ending || report.added > 0;
      metrics.recoveries.inc({ plan: plan.kind, mode, outcome: worked ? 'succeeded' : 'failed' });
    }
    const { added, usage, chunk_gaps, answer_id } = report;
    this.#watch?.attemptEnded({
      outcome,
      added,
      ...(isJoined && { seam: splice.seam }),
      ...(interruption && { interruption: withoutMessage(interruption) }),
      ...(usage && { usage }),
      ...(chunk_gaps && { chunk_gaps }),
      ...(answer_id !== undefined && { answer_id }),
    });
  }

  /** Starts a recovery, which lasts until new content arrives. */
  beginRecovery(plan: Recovery['plan'], cause: Cause): void {
    const { from = this.upstream, interrupted_at_ms = this.#context.time.wall() } = this.#recovery ?? {};
    this.#recovery = { plan, cause, from, interrupted_at_ms };
  }

  /** Whether the client waits for a recovery. */
  get isRecovering(): boolean {
    return this.#recovery !== undefined;
  }

  /** When the answer stopped, by the wall clock: the start of the current recovery, or now. */
  get interrupted_at_ms(): number {
    return this.#recovery?.interrupted_at_ms ?? this.#context.time.wall();
  }

  /** Records content shown at `at_ms`. Returns an advisory if it ends a recovery. */
  show(at_ms: number): Recovered | undefined {
    const before_ms = this.#content_ms;
    this.#content_ms = at_ms;
    if (before_ms === undefined) {
      const { metrics } = this.#context;
      metrics.timeToFirstToken.observe(
        metrics.ofRun(this.#run.id, this.upstream, (at_ms - this.started_ms) / 1000),
      );
    }
    return this.#recovery && this.#recovered(this.#recovery, before_ms ?? this.started_ms);
  }

  #recovered({ plan, cause, from }: Recovery, silent_since_ms: number): Recovered | undefined {
    if (!this.#segment) return undefined;
    const { metrics, log, time } = this.#context;
    const gap_ms = time.now() - silent_since_ms;
    this.#recovery = undefined;
    this.#gap_ms = Math.max(gap_ms, this.#gap_ms ?? 0);
    metrics.recoveryGap.observe(metrics.ofRun(this.#run.id, from, gap_ms / 1000));
    const { upstream, count: attempt } = this;
    const { mode, model } = this.#segment;
    const seam = this.#splice?.seam;
    const told = { plan, mode, ...(seam && { seam }), cause, attempt, gap_ms: Math.round(gap_ms) };
    log.info({ run: this.#run.id, upstream, ...(model !== undefined && { model }), ...told }, 'recovered');
    return { type: 'Recovered', ...told, ...(upstream !== from && { upstream }) };
  }

  get account(): AttemptsAccount {
    return {
      attempts: this.count,
      ...(this.#interruptions && { interruptions: this.#interruptions }),
      ...(this.#gap_ms !== undefined && { gap_ms: Math.round(this.#gap_ms) }),
    };
  }

  /** Tokens of the answer that the client has. */
  get delivered_tokens(): number {
    return deliveredTokens(this.#usages());
  }

  /**
   * Tokens generated by all attempts, new to the client or not, each with at least the {@link attemptWork minimum
   * charge}.
   */
  get work_tokens(): number {
    return this.#tallies.reduce((sum, tally) => {
      const generated = tally.reported?.completion_tokens ?? 0;
      return sum + attemptWork(Math.max(generated, tokensIn(sumOf(arrivedOf(tally)))));
    }, 0);
  }

  /** The usage of all attempts as one answer; `undefined` if the provider's own report, or its absence, applies. */
  usage(endedWell: boolean, promptSize: () => PromptSize): Usage | undefined {
    // For a single answer that ended properly, the provider's report is right, even if it is missing.
    const isOne = this.#tallies.slice(1).every(({ mode }) => mode === 'resume');
    return isOne && endedWell ? undefined : logicalUsage(this.#usages(), promptSize());
  }

  /** Reports the cost of the run to the log and the metrics. */
  settle(): void {
    const { metrics, log } = this.#context;
    const { id, targets } = this.#run;
    const usages = this.#usages();
    if (targets) log.info({ run: id, usage: usageByUpstream(usages) }, 'usage');
    for (const { reported } of usages) {
      metrics.tokens.inc({ kind: 'prompt' }, tokenCount(reported?.prompt_tokens));
      metrics.tokens.inc({ kind: 'completion' }, tokenCount(reported?.completion_tokens));
    }
    metrics.tokens.inc({ kind: 'repaid' }, repaidTokens(usages));
  }

  #add(tally: AttemptTally): void {
    this.#tallies.push(tally);
    this.#tally = tally;
  }

  #usages(): readonly AttemptUsage[] {
    return this.#tallies.map(usageOf);
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

const zero = (): Tally => ({ deltas: 0, came: 0, kept: 0 });

export const newTally = (
  asked: Pick<AttemptTally, 'upstream' | 'mode' | 'added_messages' | 'added_reasoning'>,
): AttemptTally => ({ ...asked, text: zero(), reasoning: zero() });

/** Counts a delta that arrived, or that was kept as part of the run. */
export function count(attempt: AttemptTally, delta: Delta, side: 'came' | 'kept'): void {
  let tally: Tally | undefined;
  switch (delta.kind) {
    case 'text':
    case 'refusal':
      tally = attempt.text;
      break;
    case 'reasoning':
      tally = attempt.reasoning;
      break;
    case 'tool_start':
    case 'tool_arguments':
      attempt.calls ??= new Map();
      tally = attempt.calls.get(delta.index) ?? zero();
      attempt.calls.set(delta.index, tally);
      break;
    case 'tool_cancel':
      if (side === 'kept') attempt.calls?.delete(delta.index);
      return;
    case 'usage':
      if (side === 'came') attempt.reported = delta.usage;
      return;
    default:
      return;
  }
  if (side === 'came') tally.deltas++;
  tally[side] += delta.kind === 'tool_start' ? delta.name.length : delta.text.length;
}

const arrivedOf = ({ text, reasoning, calls }: AttemptTally): readonly Count[] =>
  [text, reasoning, ...(calls?.values() ?? [])].map(({ deltas, came: characters }) => ({
    deltas,
    characters,
  }));

function usageOf({ text, reasoning, calls, ...attempt }: AttemptTally): AttemptUsage {
  return {
    ...attempt,
    text: keptOf(text),
    reasoning: keptOf(reasoning),
    tools: sumOf([...(calls?.values() ?? [])].map(keptOf)),
    swallowed: sumOf([swallowedOf(text), swallowedOf(reasoning)]),
  };
}

/** A seam merges held-back deltas, so the deltas are apportioned by characters. */
const keptOf = ({ deltas, came, kept }: Tally): Count => ({
  deltas: came === 0 ? 0 : Math.round((deltas * kept) / came),
  characters: kept,
});

const swallowedOf = (tally: Tally): Count => ({
  deltas: tally.deltas - keptOf(tally).deltas,
  characters: tally.came - tally.kept,
});

const loggedInterruption = (
  { cause, phase, evidence, status }: Interruption,
  upstream: string,
): LoggedInterruption => ({
  upstream,
  cause,
  phase,
  evidence: evidence.kind,
  ...(status !== undefined && { status }),
});
