import { type AttemptEnd, classify } from '../../../interrupts/classify.ts';
import type { Cause, Interruption } from '../../../interrupts/interruption.ts';
import {
  type Budget,
  charge,
  type Exhaustion,
  exhaustion,
  newBudget,
  workLimit,
} from '../../../plans/budget.ts';
import { type Bar, decide, type GiveUp, type Plan, type Policy } from '../../../plans/decide.ts';
import type { ToolCall } from '../../../plans/tool-call.ts';
import type { Transcript } from '../../../plans/transcript.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { AnswerWriter, WireRequest } from '../../wires/common/wire.ts';
import { type CompressedPlan, Compressions } from '../compression/compressions.ts';
import type { CompressedRequest } from '../compression/summary-in-place.ts';
import type { AttemptReport, PlannedAttempt } from '../context/attempt.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import type { RunTargets } from '../targets/run-targets.ts';
import { type AskedConversation, askedInstead, originalRequest, withAdded } from './asked-conversation.ts';
import { PROBE_MAX_MS } from './prefill-knowledge.ts';
import { KeptAnswer } from './provider-resume.ts';
import { TargetRequests, type WantedRest } from './recovery-request.ts';

/** How an attempt ends that another target has outrun. */
export const OUTRUN: AttemptEnd = { kind: 'broken', code: 'OUTRUN', clock: 'hedge' };

/** A probe takes no more than this part of the time that is left. */
const PROBE_SHARE = 4;

/** What is to be done about an interruption, and what it takes to do it. */
export interface Remedy {
  readonly plan: Plan;
  /** What interrupted the answer: never that a way of asking for the rest was refused. */
  readonly cause: Cause;
  readonly retry_after_ms: number | undefined;
  /** The targets that may be asked for the rest, the best first. */
  readonly left: readonly RunTarget[];
  /** The request that comes back to the very answer, where its provider has it. */
  readonly resumed: PlannedAttempt | undefined;
  /** The failure does not speak against the target that was asked. */
  readonly isBlameless: boolean;
}

export interface NextAttempt {
  readonly planned: PlannedAttempt;
  /** Until it is made. */
  readonly wait_ms: number;
}

/** What another target would be asked if the attempt under way was given up now. */
export interface ForeseenAttempt {
  readonly plan: WantedRest['plan'];
  readonly planned: PlannedAttempt;
  readonly requests: TargetRequests;
  /** Characters that the client has been shown. */
  readonly offset: number;
}

/** What a plan depends on of its run, as it is when the plan is made. */
export interface PlannedRun {
  readonly run: Run;
  readonly transcript: Transcript;
  /** What the client has of the transcript's reasoning. */
  readonly shown_reasoning: string;
  readonly facts: RequestFacts;
  readonly policy: Policy;
  readonly output: Pick<AnswerWriter, 'begun' | 'thoughts'>;
  /** Tokens that the client's limit leaves; infinite without one. */
  readonly tokens_left: number;
  /** When the run began here, by the clock that only runs forward, and the tokens that all attempts have generated. */
  readonly attempts: { readonly started_ms: number; readonly work_tokens: number };
  /** Until the deadline of the run; infinite without one. */
  readonly left_ms: number;
  readonly signal: AbortSignal;
}

/** The client's own request, or a shorter one in its place. */
export interface FirstAttempt {
  readonly planned: PlannedAttempt;
  readonly conversation: AskedConversation;
  /** The answer to it, where its provider may keep that. */
  readonly kept: KeptAnswer | undefined;
}

/** `shorter`: what is asked for in place of the client's own request. */
export function firstAttempt(
  target: RunTarget,
  run: Run,
  facts: RequestFacts,
  context: RunContext,
  shorter?: CompressedRequest,
): FirstAttempt {
  const conversation = shorter ? askedInstead(shorter) : run;
  const original = originalRequest(target, conversation, run, context);
  const added = target.upstream.responses?.background ? run.wire.backgroundFields?.(run.request) : undefined;
  const request = added ? withAdded(original, conversation, added) : original;
  const kept = KeptAnswer.of(target, run, facts, context);
  const planned = {
    target,
    mode: 'first',
    request: kept?.asked(request) ?? request,
    added_messages: [],
    isInBackground: added !== undefined,
    ...(shorter && { compressed: shorter.compressed }),
  } as const;
  return { planned, conversation, kept };
}

/**
 * Decides what follows an interruption, and makes the request for it: knows the budget of the run, its targets, and the ways
 * of asking each of them that are left.
 */
export class AttemptPlanner {
  readonly targets: RunTargets;
  readonly #run: PlannedRun;
  readonly #context: RunContext;
  readonly #barred: Bar | undefined;
  #budget: Budget;
  #conversation: AskedConversation;
  /** The targets that were interrupted or asked for the rest, and those that may keep their answer. */
  readonly #asked = new Map<RunTarget, TargetRequests>();
  /** Names of calls that were cut out of the answer and not made again yet. */
  #cutTools: readonly string[];
  /** Hardly any run needs one. */
  #compressions: Compressions | undefined;

  /**
   * `unfinished`: calls that were cut before this replica had the run. `barred`: why the run gets no further attempt, if it
   * gets none.
   */
  constructor(
    run: PlannedRun,
    targets: RunTargets,
    { planned, conversation, kept }: FirstAttempt,
    context: RunContext,
    unfinished: readonly Pick<ToolCall, 'name'>[] = [],
    barred?: Bar,
  ) {
    this.#run = run;
    this.targets = targets;
    this.#context = context;
    this.#barred = barred;
    this.#budget = newBudget(run.attempts.started_ms);
    this.#conversation = conversation;
    if (kept) this.#of(planned.target).keep(kept);
    this.#cutTools = namesOf(unfinished);
  }

  /** Takes what an attempt shows of its target, and what that will have back. */
  observe(planned: PlannedAttempt, report: AttemptReport): void {
    const { ending } = report;
    const isWhole = ending !== undefined && !ending.cutShort;
    // Nothing more is asked for after a whole answer.
    const requests = isWhole ? this.#asked.get(planned.target) : this.#of(planned.target);
    requests?.observe(planned, report);
  }

  /** The answer continued, and is now `text`: the result of a trial is known. */
  confirm(planned: PlannedAttempt, text: string): void {
    this.#asked.get(planned.target)?.confirm(planned, text);
  }

  /** The request for what follows the end of an answer, where that matters and its provider has it. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#asked.get(planned.target)?.tail(planned, report);
  }

  /** Decides on a plan. It takes time only where a conversation is to be summarised for it. */
  async remedy(planned: PlannedAttempt, report: AttemptReport, interruption: Interruption): Promise<Remedy> {
    const run = this.#run;
    const limits = this.#context.configuration.recovery;
    const isOurs = this.#of(planned.target).isRequestAtFault(planned, interruption);
    const { size: offset } = run.transcript;
    const now_ms = this.#context.time.now();
    const {
      left: all,
      target,
      moves,
      isTooLate,
    } = this.targets.after({ interruption, report, isOurs, offset });
    const left = this.#carriers(all);
    const gone = isOurs && planned.mode === 'resume';
    const { added, position } = report;
    const begun = offset > 0;
    const failure = { interruption, position, added, now_ms, gone, target, begun };
    this.#budget = charge(this.#budget, failure, limits);
    const mayResume = (interruption.retry_after_ms ?? 0) <= limits.retry_after_max_s * 1000;
    const resumed = mayResume ? this.#of(planned.target).resumption(planned, report) : undefined;
    const exhausted =
      this.#exhaustion(this.#budget, now_ms, moves) ?? (isTooLate ? ('retry_after' as const) : undefined);
    const actual = isOurs ? this.targets.told.interruption : interruption;
    const choose = (compressible: boolean) =>
      decide(run.transcript, actual, run.policy, {
        exhausted,
        delivered: run.output.begun,
        tokens_left: run.tokens_left,
        elsewhere: left.length > 0,
        compressible,
        resumable: resumed !== undefined,
        carries: left.length > 0,
      });
    const plan = choose(false);
    // Only a conversation that is too long for all targets is put in fewer words.
    const isTooLong = interruption.cause === 'context_overflow' && left.length === 0;
    const way = isTooLong ? await this.#compress(plan, choose, offset) : { plan, left, isCompressed: false };
    return {
      plan: way.plan,
      cause: actual.cause,
      retry_after_ms: interruption.retry_after_ms,
      left: way.left,
      resumed: way.plan.kind === 'R1' && !way.isCompressed ? resumed : undefined,
      isBlameless: isOurs || way.isCompressed || report.end.kind === 'replica_lost',
    };
  }

  /** The attempt that carries the plan out, or why there is none. */
  async next({ plan, retry_after_ms, left, resumed, isBlameless }: Remedy): Promise<NextAttempt | GiveUp> {
    if (!asksAgain(plan)) return 'no_way_left';
    const run = this.#run;
    // A provider that asks for a pause gets no probe before it ends, and what is left of a deadline is for the answer.
    const mayProbe = retry_after_ms === undefined && run.left_ms > PROBE_SHARE * PROBE_MAX_MS;
    const [best] = left;
    // What the target that is asked first makes of a prefix is to be known before the request is made.
    if (best && !resumed && plan.kind !== 'R4') await this.#consider(best).prepare(mayProbe, run.signal);
    const { transcript, shown_reasoning, tokens_left, left_ms, output } = run;
    const wanted = { plan, transcript, shown_reasoning, tokens_left, thoughts: output.thoughts };
    const planned = resumed ?? this.#recovery(wanted, left);
    if (!planned) return 'no_way_left';
    const { target } = planned;
    const atOnce = isBlameless && target === this.targets.current;
    const wait_ms = atOnce ? 0 : this.targets.wait_ms(target, this.#budget, retry_after_ms);
    return wait_ms < left_ms ? { planned, wait_ms } : 'deadline';
  }

  /**
   * What another target would be asked if the attempt under way, of which `report` tells, was given up as too slow; `undefined`
   * where none can be asked, or the answer itself may be come back to. Nothing is spent or given up by it.
   */
  foresee(planned: PlannedAttempt, report: AttemptReport): ForeseenAttempt | undefined {
    const run = this.#run;
    if (report.resume_path !== undefined || this.#asked.get(planned.target)?.mayResume) return undefined;
    const { time } = this.#context;
    const { transcript, shown_reasoning, tokens_left, output } = run;
    const { size: offset } = transcript;
    const left = this.#carriers(this.targets.besides(offset));
    const interruption = classify(OUTRUN, report.phase, time.wall());
    const now_ms = time.now();
    const { added, position } = report;
    const target = this.targets.position;
    const failure = { interruption, position, added, now_ms, target };
    const budget = charge(this.#budget, failure, this.#context.configuration.recovery);
    const plan = decide(transcript, interruption, run.policy, {
      exhausted: this.#exhaustion(budget, now_ms, true),
      delivered: output.begun,
      tokens_left,
      elsewhere: true,
      carries: left.length > 0,
    });
    // To say the same again, another target would need the luck that no cut asks for.
    if (!asksAgain(plan) || (plan.kind === 'R3' && plan.repeats)) return undefined;
    const cutTools = cutToolsAfter(plan, this.#cutTools);
    const { thoughts } = output;
    const rest = { plan, transcript, shown_reasoning, tokens_left, thoughts, cutTools, isAuthor: false };
    for (const other of left) {
      const requests = this.#consider(other);
      const next = requests.recovery(rest);
      if (next) return { plan, planned: next, requests, offset };
    }
    return undefined;
  }

  /** Whether the attempt that was foreseen does what is decided now. Then it is the next one. */
  fulfil(
    { plan, planned, requests, offset }: ForeseenAttempt,
    { plan: decided, left, resumed }: Remedy,
  ): boolean {
    const { target } = planned;
    const isAsDecided = decided.kind === plan.kind && this.#run.transcript.size === offset;
    if (!isAsDecided || resumed || !left.includes(target)) return false;
    this.#giveUp(plan);
    this.#asked.set(target, requests);
    return true;
  }

  /** What is asked for, without what is added to it to ask for the rest. */
  get request(): WireRequest {
    return this.#conversation.request;
  }

  /** It has a summary in it already. */
  get isCompressed(): boolean {
    return this.#conversation.compressed !== undefined;
  }

  /** From now on this is asked for in its place. */
  compress(shorter: CompressedRequest): void {
    this.#conversation = askedInstead(shorter);
    for (const requests of this.#asked.values()) requests.replaceConversation(this.#conversation);
  }

  /** Nothing more is wanted of answers that their providers may still be at. */
  async release(): Promise<void> {
    await Promise.all(Array.from(this.#asked.values(), (requests) => requests.release()));
  }

  /** `moves`: another target is asked next. */
  #exhaustion(budget: Budget, now_ms: number, moves: boolean): Exhaustion | Bar | undefined {
    const { facts, attempts, left_ms } = this.#run;
    const limits = this.#context.configuration.recovery;
    const max_work_tokens = workLimit(limits.max_work_tokens, facts.max_tokens);
    const { work_tokens } = attempts;
    return (
      this.#barred ?? exhaustion(budget, limits, { now_ms, work_tokens, max_work_tokens, left_ms, moves })
    );
  }

  #compress(plan: Plan, choose: (compressible: boolean) => Plan, offset: number): Promise<CompressedPlan> {
    const { run, signal } = this.#run;
    this.#compressions ??= new Compressions(run, this, this.targets, this.#context);
    return this.#compressions.planOrCompress(plan, choose, offset, signal);
  }

  /** Those of the targets that take back what the provider's tools have done, where there is any. */
  #carriers(targets: readonly RunTarget[]): readonly RunTarget[] {
    const { transcript } = this.#run;
    if (transcript.providerTools.length === 0) return targets;
    return targets.filter((target) => this.#consider(target).carries(transcript));
  }

  /** The request for the rest to the first of these targets that can be asked for it; `undefined` when none can. */
  #recovery(wanted: WantedRest, targets: readonly RunTarget[]): PlannedAttempt | undefined {
    const cutTools = this.#giveUp(wanted.plan);
    for (const target of targets) {
      const requests = this.#of(target);
      // A model cannot continue the thoughts of another.
      const isAuthor = this.#asked.size === 1;
      const planned = requests.recovery({ ...wanted, cutTools, isAuthor });
      if (planned) return planned;
    }
    return undefined;
  }

  /**
   * The answer that was interrupted is not come back to. From now on requests for the rest say which calls were cut, until the
   * answer begins anew. Returns the names of these.
   */
  #giveUp(plan: WantedRest['plan']): readonly string[] {
    void this.release();
    this.#cutTools = cutToolsAfter(plan, this.#cutTools);
    return this.#cutTools;
  }

  #of(target: RunTarget): TargetRequests {
    const requests = this.#consider(target);
    this.#asked.set(target, requests);
    return requests;
  }

  /** A target that is only considered has not been asked, so it has no part in the answer. */
  #consider(target: RunTarget): TargetRequests {
    return (
      this.#asked.get(target) ??
      new TargetRequests(target, this.#conversation, this.#run.run, this.#context, this.#run.facts)
    );
  }
}

const asksAgain = (plan: Plan): plan is WantedRest['plan'] =>
  plan.kind === 'R1' || plan.kind === 'R3' || plan.kind === 'R4';

/** Names of the calls that were cut out of an answer, each once. `before`: those that were cut before the plan was made. */
function cutToolsAfter(plan: WantedRest['plan'], before: readonly string[]): readonly string[] {
  if (plan.kind === 'R4') return [];
  return plan.kind === 'R3' ? [...new Set([...before, ...namesOf(plan.cancel)])] : before;
}

const namesOf = (calls: readonly Pick<ToolCall, 'name'>[]): readonly string[] => [
  ...new Set(calls.map(({ name }) => name)),
];
