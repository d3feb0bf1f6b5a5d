import type { Evidence, Interruption } from '../../../interrupts/interruption.ts';
import { isUsage } from '../../../plans/delta.ts';
import type { AttemptRequest } from '../../upstream/attempt.ts';
import { type RunTarget, upstreamUrl } from '../../upstream/target.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { AttemptReport } from '../context/attempt-report.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { KeptAnswer, stopAnswer } from './kept-answer.ts';
import type { PlannedAttempt } from './recovery-request.ts';

/** A connection that got no further and ended so: nothing is left there, or nothing more will come. */
const ENDS_OF_IT: ReadonlySet<Evidence['kind']> = new Set(['clean_eof', 'clock']);
/** Connections in a row that got no further, after which the rest is asked for in another way. */
const FUTILE_MAX = 2;

/** Resumes the answer of one target, if its provider keeps generating it although the connection is lost. */
export class ProviderResume {
  readonly #target: RunTarget;
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #facts: RequestFacts;
  /** The answer to the original request, where its provider may keep it. */
  #kept: KeptAnswer | undefined;
  /** There is none, or there was nothing at its end. */
  #isClosed: boolean;
  /** Connections in a row that got no further. */
  #futile = 0;
  #stopping: Promise<void> = Promise.resolve();

  constructor(target: RunTarget, run: Run, context: RunContext, facts: RequestFacts) {
    this.#target = target;
    this.#run = run;
    this.#context = context;
    this.#facts = facts;
    this.#isClosed = !run.wire.modes.includes('resume');
  }

  /** The original request, as one whose answer can be come back to. */
  prepared(request: AttemptRequest): AttemptRequest {
    this.#kept = this.#keep();
    return this.#kept?.asked(request) ?? request;
  }

  /** Takes in how far an attempt has come, and what its provider reports about resuming. */
  observe({ mode, request }: PlannedAttempt, report: AttemptReport): void {
    this.#kept?.observe(report);
    if (mode === 'resume') this.#futile = this.#rest(report)?.url === request.url ? this.#futile + 1 : 0;
  }

  /** The request for the rest of the very answer that was interrupted, where its provider has it. */
  request({ splice }: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    const rest = this.#rest(report);
    if (!rest || splice || this.#isClosed) return undefined;
    const { 'content-type': _, ...headers } = this.#target.headers;
    return { target: this.#target, mode: 'resume', request: { ...rest, headers }, added_messages: [] };
  }

  /** The same for what follows the end of the answer, where its usage was asked for and has not come; asked for once. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    const { ending, end } = report;
    if (!ending?.cutShort || planned.ending || !this.#facts.usageAsked) return undefined;
    // A provider that fell silent after the end has nothing more to send.
    if (end.kind === 'broken' && end.clock !== undefined) return undefined;
    if ([ending.finish, ...ending.after].some((event) => event?.deltas.some(isUsage))) return undefined;
    const request = this.request(planned, report);
    return request && { ...request, ending };
  }

  /** True if the answer is gone, or was never there to come back to. */
  isGone({ evidence }: Interruption): boolean {
    const isGone =
      evidence.kind === 'not_a_stream' ||
      (evidence.kind === 'status' && evidence.status < 500) ||
      (ENDS_OF_IT.has(evidence.kind) && this.#futile > 0) ||
      this.#futile >= FUTILE_MAX;
    this.#isClosed ||= isGone;
    return isGone;
  }

  /** Nothing more is needed of the answer. Resolves once its provider is stopped, or need not be. */
  release(): Promise<void> {
    const url = this.#kept?.stop_url;
    this.#kept = undefined;
    if (url !== undefined) this.#stopping = this.#stop(url);
    return this.#stopping;
  }

  async #stop(url: string): Promise<void> {
    const isStopped = await stopAnswer(url, this.#target, this.#context);
    // A server that keeps answers and cannot be stopped would finish every answer that is cancelled.
    if (isStopped === false)
      this.#context.capabilities.rememberKeeping(this.#target.name, this.#model, false);
  }

  #keep(): KeptAnswer | undefined {
    const { capabilities } = this.#context;
    const mayKeep = this.#run.wire.isKept && capabilities.keeps(this.#target.name, this.#model) !== false;
    // Which of several choices have ended, only the connection knew on which they did.
    if (!mayKeep || this.#facts.choices > 1) return undefined;
    const keeping = capabilities.dialect(this.#target, this.#model)?.keeps;
    return keeping && KeptAnswer.at(this.#target, keeping);
  }

  #rest({ resume_path }: AttemptReport): Pick<AttemptRequest, 'url' | 'position'> | undefined {
    if (resume_path === undefined) return this.#kept?.rest;
    return { url: upstreamUrl(this.#target.upstream.base_url, resume_path) };
  }

  get #model(): string {
    return this.#target.model ?? this.#run.request.model;
  }
}
