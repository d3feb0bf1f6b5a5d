import type { Interruption } from '../../../interrupts/interruption.ts';
import type { Compression } from '../../../plans/delta.ts';
import type { ToolCall } from '../../../plans/tool-call.ts';
import type { Transcript } from '../../../plans/transcript.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import type { AttemptReport, PlannedAttempt } from '../context/attempt.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { type AskedConversation, originalRequest } from './asked-conversation.ts';
import { KeptAnswer } from './provider-resume.ts';
import { TargetRequests, type WantedRest } from './recovery-request.ts';

/** The client's own request. */
export interface FirstAttempt {
  readonly planned: PlannedAttempt;
  /** The answer to it, where its provider may keep that. */
  readonly kept: KeptAnswer | undefined;
}

export function firstAttempt(
  target: RunTarget,
  run: Run,
  facts: RequestFacts,
  context: RunContext,
): FirstAttempt {
  const request = originalRequest(target, run, run, context);
  const kept = KeptAnswer.of(target, run, facts, context);
  const planned = {
    target,
    mode: 'first',
    request: kept?.asked(request) ?? request,
    added_messages: [],
  } as const;
  return { planned, kept };
}

/** The requests of a run for the rest of its answer, whichever of its targets they go to. Most runs need none. */
export class RunRequests {
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #facts: RequestFacts;
  #conversation: AskedConversation;
  /** The targets that were interrupted or asked for the rest, and those that may keep their answer. */
  readonly #targets = new Map<RunTarget, TargetRequests>();
  /** Names of calls that were cut out of the answer and not made again yet. */
  #cutTools: ReadonlySet<string> | undefined;

  /** `unfinished`: calls that were cut before this replica had the run. */
  constructor(
    run: Run,
    context: RunContext,
    facts: RequestFacts,
    { planned, kept }: FirstAttempt,
    unfinished: readonly Pick<ToolCall, 'name'>[] = [],
  ) {
    this.#run = run;
    this.#context = context;
    this.#facts = facts;
    this.#conversation = run;
    if (kept) this.#of(planned.target).keep(kept);
    this.#haveMadeAgain(unfinished);
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

  /** The request that comes back to the very answer, if its provider has it. */
  resumption(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#of(planned.target).resumption(planned, report);
  }

  /** The request for what follows the end of an answer, where that matters and its provider has it. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#targets.get(planned.target)?.tail(planned, report);
  }

  /** To be waited for before {@link recovery}: finds out what the target that is asked first makes of a prefix. */
  async prepare([target]: readonly RunTarget[], mayProbe: boolean, signal: AbortSignal): Promise<void> {
    if (target) await this.#consider(target).prepare(mayProbe, signal);
  }

  /** The request for the rest to the first of these targets that can be asked for it; `undefined` when none can. */
  recovery(wanted: WantedRest, targets: readonly RunTarget[]): PlannedAttempt | undefined {
    const { plan } = wanted;
    void this.release();
    if (plan.kind === 'R3') this.#haveMadeAgain(plan.cancel);
    else if (plan.kind === 'R4') this.#cutTools = undefined;
    const cutTools = [...(this.#cutTools ?? [])];
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
    return this.#consider(target).carries(transcript);
  }

  /** True if the way of asking was at fault, not the target: another one may do. */
  isRequestAtFault(planned: PlannedAttempt, interruption: Interruption): boolean {
    return this.#of(planned.target).isRequestAtFault(planned, interruption);
  }

  /** The answer continued, and is now `text`: the result of a trial is known. */
  confirm(planned: PlannedAttempt, text: string): void {
    this.#targets.get(planned.target)?.confirm(planned, text);
  }

  /** Takes what an attempt shows of its target, and what that will have back. */
  observe(planned: PlannedAttempt, report: AttemptReport): void {
    const { ending } = report;
    const isWhole = ending !== undefined && !ending.cutShort;
    // Nothing more is asked for after a whole answer.
    const requests = isWhole ? this.#targets.get(planned.target) : this.#of(planned.target);
    requests?.observe(planned, report);
  }

  /** Nothing more is wanted of answers that their providers may still be at. */
  async release(): Promise<void> {
    await Promise.all(Array.from(this.#targets.values(), (requests) => requests.release()));
  }

  /** From now on requests for the rest say that these calls were cut, until the answer begins anew. */
  #haveMadeAgain(calls: readonly Pick<ToolCall, 'name'>[]): void {
    if (calls.length === 0) return;
    this.#cutTools = new Set([...(this.#cutTools ?? []), ...calls.map(({ name }) => name)]);
  }

  #of(target: RunTarget): TargetRequests {
    const requests = this.#consider(target);
    this.#targets.set(target, requests);
    return requests;
  }

  /** A target that is only considered has not been asked, so it has no part in the answer. */
  #consider(target: RunTarget): TargetRequests {
    return (
      this.#targets.get(target) ??
      new TargetRequests(target, this.#conversation, this.#run, this.#context, this.#facts)
    );
  }
}
