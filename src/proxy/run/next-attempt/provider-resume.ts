import { randomBytes } from 'node:crypto';
import type { AttemptEnd } from '../../../interrupts/classify.ts';
import type { Evidence, Interruption } from '../../../interrupts/interruption.ts';
import { isUsage } from '../../../plans/delta.ts';
import type { AttemptRequest } from '../../upstream/attempt.ts';
import { newPosition, type StreamPosition } from '../../upstream/stream-position.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { TransportFailure, upstreamUrl } from '../../upstream/transport.ts';
import type { Keeping } from '../../wires/common/dialect.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { AttemptReport, PlannedAttempt } from '../context/attempt.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { modelOf } from './asked-conversation.ts';

/** If a connection made no progress and ended like this, nothing is left to resume. */
const ENDS_OF_IT: ReadonlySet<Evidence['kind']> = new Set(['clean_eof', 'clock']);
/** Maximum consecutive connections without progress before the rest is requested in another way. */
const FUTILE_MAX = 2;

/** The id alone gives access to the answer, so it must be impossible to guess. */
const ID_BYTES = 16;
const URL_SAFE = /^[\w-]+$/;
/** A provider that takes longer to stop isn't waited for. */
const STOP_WAIT_MAX_MS = 2_000;

/** Resumes the answer of one target, if its provider keeps generating it after the connection is lost. */
export class ProviderResume {
  readonly #target: RunTarget;
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #facts: RequestFacts;
  /** The answer to the original request, if its provider may keep it. */
  #kept: KeptAnswer | undefined;
  /** The wire doesn't support resuming, or the answer is gone. */
  #isClosed: boolean;
  /** Consecutive connections without progress. */
  #futile = 0;
  #stopping: Promise<void> = Promise.resolve();
  /** Where to cancel an answer that the provider generates in the background only for us. */
  #cancel_url: string | undefined;

  constructor(
    target: RunTarget,
    run: Run,
    context: RunContext,
    facts: RequestFacts,
    kept: KeptAnswer | undefined,
  ) {
    this.#kept = kept;
    this.#target = target;
    this.#run = run;
    this.#context = context;
    this.#facts = facts;
    this.#isClosed = !run.wire.modes.includes('resume');
  }

  /** Records the progress of an attempt, and what its provider reports about resuming. */
  observe({ mode, request }: PlannedAttempt, report: AttemptReport): void {
    this.#kept?.observe(report);
    const { cancel_path } = report;
    this.#cancel_url =
      cancel_path === undefined ? undefined : upstreamUrl(this.#target.upstream.base_url, cancel_path);
    if (mode === 'resume') this.#futile = this.#rest(report)?.url === request.url ? this.#futile + 1 : 0;
  }

  /** The request for the rest of the interrupted answer, if its provider has it. */
  request({ splice }: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    const rest = this.#rest(report);
    if (!rest || splice || this.#isClosed) return undefined;
    const { 'content-type': _, ...headers } = this.#target.headers;
    return { target: this.#target, mode: 'resume', request: { ...rest, headers }, added_messages: [] };
  }

  /** The request for what follows the end of the answer, if its usage was requested and hasn't arrived; made once. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    const { ending, end } = report;
    if (!ending?.cutShort || planned.ending || !this.#facts.usageAsked) return undefined;
    // A provider that fell silent after the end has nothing more to send.
    if (end.kind === 'broken' && end.clock !== undefined) return undefined;
    if ([ending.finish, ...ending.after].some((event) => event?.deltas.some(isUsage))) return undefined;
    const request = this.request(planned, report);
    return request && { ...request, ending };
  }

  /** True if the answer is gone, or was never kept. */
  isGone({ evidence }: Interruption): boolean {
    const isGone =
      evidence.kind === 'not_a_stream' ||
      (evidence.kind === 'status' && evidence.status < 500) ||
      (ENDS_OF_IT.has(evidence.kind) && this.#futile > 0) ||
      this.#futile >= FUTILE_MAX;
    this.#isClosed ||= isGone;
    return isGone;
  }

  /** Gives up the answer. Resolves once its provider is stopped, or doesn't have to be. */
  release(): Promise<void> {
    const url = this.#kept?.stop_url;
    const cancel_url = this.#cancel_url;
    this.#kept = undefined;
    this.#cancel_url = undefined;
    if (url !== undefined) this.#stopping = this.#stop(url);
    if (cancel_url !== undefined) this.#stopping = this.#cancel(cancel_url);
    return this.#stopping;
  }

  /** Has no effect if the answer has ended in the meantime, which is fine. */
  async #cancel(url: string): Promise<void> {
    await stopAnswer('POST', url, this.#target, this.#context);
  }

  async #stop(url: string): Promise<void> {
    const isStopped = await stopAnswer('DELETE', url, this.#target, this.#context);
    // Such a server would finish every cancelled answer, so it's no longer asked to keep any.
    const { capabilities } = this.#context;
    if (isStopped === false)
      capabilities.rememberKeeping(this.#target.name, modelOf(this.#target, this.#run), false);
  }

  #rest({ resume_path }: AttemptReport): Pick<AttemptRequest, 'url' | 'position'> | undefined {
    if (resume_path === undefined) return this.#kept?.rest;
    return { url: upstreamUrl(this.#target.upstream.base_url, resume_path) };
  }
}

/** An answer that its provider may keep after a lost connection, across all connections to it. */
export class KeptAnswer {
  readonly #keeping: Keeping;
  readonly #base_url: string;
  readonly #position: StreamPosition;
  #id: string | undefined;
  /** The provider has started to send the answer. Before that, a lost connection stops it. */
  #isAnswered = false;
  #isOver = false;

  private constructor(keeping: Keeping, base_url: string) {
    this.#keeping = keeping;
    this.#base_url = upstreamUrl(base_url);
    this.#position = newPosition(keeping.counts);
    if (keeping.id.in === 'request') this.#id = randomBytes(ID_BYTES).toString('hex');
  }

  /** The answer to the original request; `undefined` if it can't be kept, or if the client has chosen its id. */
  static of(
    target: RunTarget,
    run: Run,
    { choices }: RequestFacts,
    { capabilities }: RunContext,
  ): KeptAnswer | undefined {
    // With several choices, only the lost connection knew which of them had ended.
    if (!run.wire.isKept || choices > 1) return undefined;
    const model = modelOf(target, run);
    const keeping = capabilities.dialect(target, model)?.keeps;
    if (!keeping || capabilities.keeps(target.name, model) === false) return undefined;
    const { id } = keeping;
    const isClients = id.in === 'request' && target.headers[id.header] !== undefined;
    return isClients ? undefined : new KeptAnswer(keeping, target.upstream.base_url);
  }

  /** Extends the request so that the provider keeps its answer. */
  asked(request: AttemptRequest): AttemptRequest {
    const { id } = this.#keeping;
    const position = this.#position;
    if (id.in === 'response' || this.#id === undefined) return { ...request, position };
    return { ...request, headers: { ...request.headers, [id.header]: this.#id }, position };
  }

  /** Records how a connection to it ended. */
  observe({ end, phase, samples: traces }: AttemptReport): void {
    const { id } = this.#keeping;
    const told = traces.headers[id.header];
    if (id.in === 'response' && typeof told === 'string' && URL_SAFE.test(told)) this.#id ??= told;
    this.#isAnswered ||= phase !== 'connect';
    this.#isOver ||= isOver(end) || (end.kind === 'refused' && !this.#isAnswered);
  }

  /** The request for the rest; `undefined` if that isn't available. */
  get rest(): Pick<AttemptRequest, 'url' | 'position'> | undefined {
    const { value } = this.#position;
    const isKept = this.#isAnswered && !this.#isOver;
    if (!isKept || this.#id === undefined || value === undefined) return undefined;
    const url = this.#keeping.resumeUrl(this.#base_url, this.#id, value);
    return { url, position: this.#position };
  }

  /** The URL to `DELETE` once the answer isn't needed; `undefined` unless its provider may still be generating it. */
  get stop_url(): string | undefined {
    if (this.#isOver || this.#id === undefined || !this.#position.isBegun) return undefined;
    return this.#keeping.stopUrl?.(this.#base_url, this.#id);
  }
}

/** True if the provider itself has ended the answer, or never started it. */
function isOver(end: AttemptEnd): boolean {
  switch (end.kind) {
    case 'eof':
      return end.done || end.residue !== undefined;
    case 'error_event':
    case 'bad_finish':
    case 'unusable':
    case 'replica_lost':
    // The position is already past the damage, and everything before it in the same piece was read.
    case 'malformed_event':
      return true;
    case 'broken':
    case 'refused':
    case 'limit':
    case 'seam_rejected':
      return false;
  }
}

/**
 * Stops an answer by a `DELETE` or `POST` to `url`. False if the provider doesn't support that; `undefined` if it's
 * unknown whether the provider has stopped.
 */
async function stopAnswer(
  method: 'DELETE' | 'POST',
  url: string,
  { upstream, headers }: RunTarget,
  { configuration, transport, time }: RunContext,
): Promise<boolean | undefined> {
  const abort = new AbortController();
  const cancelTimer = time.after(STOP_WAIT_MAX_MS, () => abort.abort());
  const { 'content-type': _, ...sent } = headers;
  const { connect_ms } = { ...configuration.clocks, ...upstream.clocks };
  try {
    const { status, body } = await (transport.bare ?? transport).open({
      method,
      url,
      headers: sent,
      query: upstream.query,
      signal: abort.signal,
      connect_ms,
    });
    await body.consume(() => undefined);
    // A server error doesn't show whether the server supports it.
    return status < 300 ? true : status < 500 ? false : undefined;
  } catch (error) {
    if (!(error instanceof TransportFailure)) throw error;
    return undefined;
  } finally {
    cancelTimer();
  }
}
