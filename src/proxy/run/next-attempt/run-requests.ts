import type { Interruption } from '../../../interrupts/interruption.ts';
import type { Compression } from '../../../plans/delta.ts';
import type { ToolCall } from '../../../plans/tool-call.ts';
import type { Transcript } from '../../../plans/transcript.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import type { AttemptReport } from '../context/attempt-report.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import {
  type AskedConversation,
  type PlannedAttempt,
  TargetRequests,
  type WantedRest,
} from './recovery-request.ts';

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
    for (const requests of this.#targets.values()) requests.replaceConversation(this.#conversation);
  }

  /** From now on requests for the rest say that these calls were cut, until the answer begins anew. */
  haveMadeAgain(calls: readonly Pick<ToolCall, 'name'>[]): void {
    for (const { name } of calls) this.#cutTools.add(name);
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

  /** To be waited for before {@link recovery}: finds out what the target that is asked first makes of a prefix. */
  async prepare([target]: readonly RunTarget[], mayProbe: boolean, signal: AbortSignal): Promise<void> {
    if (target) await (this.#targets.get(target) ?? this.#requestsTo(target)).prepare(mayProbe, signal);
  }

  /** The request for the rest to the first of these targets that can be asked for it; `undefined` when none can. */
  recovery(wanted: WantedRest, targets: readonly RunTarget[]): PlannedAttempt | undefined {
    const { plan } = wanted;
    void this.release();
    if (plan.kind === 'R3') this.haveMadeAgain(plan.cancel);
    else if (plan.kind === 'R4') this.#cutTools.clear();
    const cutTools = [...this.#cutTools];
    for (const target of targets) {
      const requests = this.#of(target);
      // A model cannot continue the thoughts of another.
      const isAuthor = this.#targets.size === 1;
      const planned = requests.recovery({ ...wanted, cutTools, isAuthor });
      if (planned) return planned;
    }
    return undefined;
  }

  /** True if this target takes back what the tools of the provider have done. */
  carries(target: RunTarget, transcript: Transcript): boolean {
    // A target that is only considered has not been asked, so it has no part in the answer.
    const requests = this.#targets.get(target) ?? this.#requestsTo(target);
    return requests.carries(transcript);
  }

  /** True if the way of asking was at fault, not the target: another one may do. */
  isRequestAtFault(planned: PlannedAttempt, interruption: Interruption): boolean {
    return this.#of(planned.target).isRequestAtFault(planned, interruption);
  }

  /** The answer continued, and is now `text`: the result of a trial is known. */
  confirm(planned: PlannedAttempt, text: string): void {
    this.#of(planned.target).confirm(planned, text);
  }

  /** Takes what an attempt shows of the server it came from, and what that will have back. */
  observe(planned: PlannedAttempt, report: AttemptReport): void {
    this.#of(planned.target).observe(planned, report);
  }

  /** Nothing more is wanted of answers that their providers may still be at. */
  async release(): Promise<void> {
    await Promise.all(Array.from(this.#targets.values(), (requests) => requests.release()));
  }

  #of(target: RunTarget): TargetRequests {
    const known = this.#targets.get(target);
    if (known) return known;
    const requests = this.#requestsTo(target);
    requests.replaceConversation(this.#conversation);
    this.#targets.set(target, requests);
    return requests;
  }
}
