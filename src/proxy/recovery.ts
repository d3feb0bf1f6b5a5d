import type { Cause, Interruption } from '../interrupts/interruption.ts';
import { type Budget, charge, exhaustion, newBudget } from '../plans/budget.ts';
import { type Bar, decide, type Plan } from '../plans/decide.ts';
import type { AttemptReport } from './attempt-report.ts';
import { Compressions } from './compression/compressions.ts';
import type { PlannedAttempt } from './recovery-request.ts';
import type { RunContext, RunTarget } from './run.ts';
import type { RunRequests } from './targets/run-requests.ts';
import type { RunTargets } from './targets/run-targets.ts';
import type { Turn } from './turn.ts';

/** What is to be done about an interruption, and what it takes to do it. */
export interface Remedy {
  readonly plan: Plan;
  /** What interrupted the answer: never that a way of asking for the rest was refused. */
  readonly cause: Cause;
  readonly retry_after_ms: number | undefined;
  /** Who may be asked for the rest, the best first. */
  readonly left: readonly RunTarget[];
  /** The request that comes back to the very answer, where its provider has it. */
  readonly resumed: PlannedAttempt | undefined;
  /** What failed says nothing against the target that was asked. */
  readonly isBlameless: boolean;
}

export interface NextAttempt {
  readonly planned: PlannedAttempt;
  /** Until it is made. */
  readonly wait_ms: number;
}

/** Brings together what a plan depends on: the budget of the run, its targets, and the ways of asking that are left. */
export class Recovery {
  readonly #turn: Turn;
  readonly #targets: RunTargets;
  readonly #requests: RunRequests;
  readonly #context: RunContext;
  readonly #compressions: Compressions;
  readonly #barred: Bar | undefined;
  #budget: Budget;

  /** `barred`: why the run gets no further attempt, if it gets none. */
  constructor(
    turn: Turn,
    targets: RunTargets,
    requests: RunRequests,
    context: RunContext,
    barred: Bar | undefined,
  ) {
    this.#turn = turn;
    this.#targets = targets;
    this.#requests = requests;
    this.#context = context;
    this.#compressions = new Compressions(turn.run, requests, targets, context);
    this.#barred = barred;
    this.#budget = newBudget(context.time.now());
  }

  /** Decides on a plan. It takes time only where a conversation is to be summarised for it. */
  async remedy(planned: PlannedAttempt, report: AttemptReport, interruption: Interruption): Promise<Remedy> {
    const turn = this.#turn;
    const limits = this.#context.configuration.recovery;
    const isOurs = this.#requests.blames(planned, interruption);
    const { size: offset } = turn.transcript;
    const now_ms = this.#context.time.now();
    const { left, ...moved } = this.#targets.after({ interruption, report, isOurs, offset });
    const gone = isOurs && planned.mode === 'resume';
    const failure = { interruption, offset, added: report.added, now_ms, gone, ...moved };
    this.#budget = charge(this.#budget, limits, failure);
    const resumed = this.#requests.resumption(planned, report);
    const exhausted = this.#barred ?? exhaustion(this.#budget, limits, now_ms);
    const actual = isOurs ? this.#targets.told.interruption : interruption;
    const choose = (compressible: boolean) =>
      decide(turn.transcript, actual, turn.policy, {
        exhausted,
        delivered: turn.delivery.begun,
        tokens_left: turn.tokens_left,
        elsewhere: left.length > 0,
        compressible,
        resumable: resumed !== undefined,
      });
    const way = await this.#compressions.wayOut(choose, { interruption, left, offset }, turn.signal);
    return {
      plan: way.plan,
      cause: actual.cause,
      retry_after_ms: interruption.retry_after_ms,
      left: way.left,
      resumed: way.plan.kind === 'R1' && !way.isCompressed ? resumed : undefined,
      isBlameless: isOurs || way.isCompressed || report.end.kind === 'replica_lost',
    };
  }

  /** The attempt that carries the plan out; `undefined` where no way of asking is left. */
  next({ plan, retry_after_ms, left, resumed, isBlameless }: Remedy): NextAttempt | undefined {
    if (plan.kind !== 'R1' && plan.kind !== 'R3' && plan.kind !== 'R4') return undefined;
    const { transcript, tokens_left } = this.#turn;
    const planned = resumed ?? this.#requests.recovery(plan, transcript, tokens_left, left);
    if (!planned) return undefined;
    const { target } = planned;
    const atOnce = isBlameless && target === this.#targets.current;
    return { planned, wait_ms: atOnce ? 0 : this.#targets.wait_ms(target, this.#budget, retry_after_ms) };
  }
}
