import type { Interruption } from '../../interrupts/interruption.ts';
import type { Plan } from '../../plans/decide.ts';
import type { Compression } from '../../plans/segment.ts';
import type { Transcript } from '../../plans/transcript.ts';
import type { AttemptReport } from '../attempt-report.ts';
import { type AskedConversation, type PlannedAttempt, TargetRequests } from '../recovery-request.ts';
import type { Run, RunContext, RunTarget } from '../run.ts';
import type { RequestFacts } from '../wires/request-facts.ts';
import type { WireRequest } from '../wires/wire.ts';

/** The requests of a run, whichever of its targets they go to. */
export class RunRequests {
  readonly #requestsTo: (target: RunTarget) => TargetRequests;
  #conversation: AskedConversation;
  readonly #targets = new Map<RunTarget, TargetRequests>();
  /** Names of calls that were cut out of the answer and not made again yet. */
  readonly #cutTools = new Set<string>();

  constructor(run: Run, context: RunContext, facts: RequestFacts) {
    this.#conversation = run;
    this.#requestsTo = (target) => new TargetRequests(target, run, context, facts);
  }

  /** What is asked for, without what is added to it to ask for the rest. */
  get request(): WireRequest {
    return this.#conversation.request;
  }

  /** From now on this is asked for in its place. */
  compress(request: WireRequest, compressed: Compression): void {
    this.#conversation = { request, body: JSON.stringify(request), compressed };
    for (const requests of this.#targets.values()) requests.goOnWith(this.#conversation);
  }

  /** The client's own request. */
  original(target: RunTarget): PlannedAttempt {
    return this.#of(target).original();
  }

  /** The request that comes back to the very answer, if its provider has it. */
  resumption(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#of(planned.target).resumption(planned, report);
  }

  /** The request for what follows the end of an answer, where that matters and its provider has it. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#of(planned.target).tail(planned, report);
  }

  /** The request for the rest to the first of these targets that can be asked for it; `undefined` when none can. */
  recovery(
    plan: Extract<Plan, { kind: 'R1' | 'R3' | 'R4' }>,
    transcript: Transcript,
    tokens_left: number,
    targets: readonly RunTarget[],
  ): PlannedAttempt | undefined {
    void this.release();
    if (plan.kind === 'R3') for (const { name } of plan.cancel) this.#cutTools.add(name);
    else if (plan.kind === 'R4') this.#cutTools.clear();
    const cutTools = [...this.#cutTools];
    for (const target of targets) {
      const requests = this.#of(target);
      // Thoughts of another model are not its own to go on with.
      const isAuthor = this.#targets.size === 1;
      const planned = requests.recovery({ plan, transcript, tokens_left, cutTools, isAuthor });
      if (planned) return planned;
    }
    return undefined;
  }

  /** True if the way of asking was at fault, not the target: another one may do. */
  blames(planned: PlannedAttempt, interruption: Interruption): boolean {
    return this.#of(planned.target).blames(planned, interruption);
  }

  /** The answer went on: what was only tried is known now. */
  confirm(planned: PlannedAttempt): void {
    this.#of(planned.target).confirm(planned);
  }

  /** Takes what an attempt shows of the server it came from, and what that will have back. */
  hear(planned: PlannedAttempt, report: AttemptReport): void {
    this.#of(planned.target).hear(planned, report);
  }

  /** Nothing more is wanted of answers that their providers may still be at. */
  async release(): Promise<void> {
    await Promise.all(Array.from(this.#targets.values(), (requests) => requests.release()));
  }

  #of(target: RunTarget): TargetRequests {
    const known = this.#targets.get(target);
    if (known) return known;
    const requests = this.#requestsTo(target);
    requests.goOnWith(this.#conversation);
    this.#targets.set(target, requests);
    return requests;
  }
}
