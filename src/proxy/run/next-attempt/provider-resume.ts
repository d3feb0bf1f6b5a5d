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

/** A connection that got no further and ended so: nothing is left there, or nothing more will come. */
const ENDS_OF_IT: ReadonlySet<Evidence['kind']> = new Set(['clean_eof', 'clock']);
/** Connections in a row that got no further, after which the rest is asked for in another way. */
const FUTILE_MAX = 2;

/** The name of an answer is enough to read it, so it must be impossible to guess. */
const ID_BYTES = 16;
const URL_SAFE = /^[\w-]+$/;
/** A provider that takes longer to stop is left to itself. */
const STOP_WAIT_MAX_MS = 2_000;

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
  /** Where to cancel what the provider makes in the background for us alone. */
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

  /** Takes in how far an attempt has come, and what its provider reports about resuming. */
  observe({ mode, request }: PlannedAttempt, report: AttemptReport): void {
    this.#kept?.observe(report);
    const { cancel_path } = report;
    this.#cancel_url =
      cancel_path === undefined ? undefined : upstreamUrl(this.#target.upstream.base_url, cancel_path);
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
    const cancel_url = this.#cancel_url;
    this.#kept = undefined;
    this.#cancel_url = undefined;
    if (url !== undefined) this.#stopping = this.#stop(url);
    if (cancel_url !== undefined) this.#stopping = this.#cancel(cancel_url);
    return this.#stopping;
  }

  /** What has ended meanwhile cannot be cancelled, which is as well. */
  async #cancel(url: string): Promise<void> {
    await stopAnswer('POST', url, this.#target, this.#context);
  }

  async #stop(url: string): Promise<void> {
    const isStopped = await stopAnswer('DELETE', url, this.#target, this.#context);
    // A server that keeps answers and cannot be stopped would finish every answer that is cancelled.
    const { capabilities } = this.#context;
    if (isStopped === false)
      capabilities.rememberKeeping(this.#target.name, modelOf(this.#target, this.#run), false);
  }

  #rest({ resume_path }: AttemptReport): Pick<AttemptRequest, 'url' | 'position'> | undefined {
    if (resume_path === undefined) return this.#kept?.rest;
    return { url: upstreamUrl(this.#target.upstream.base_url, resume_path) };
  }
}

/** An answer that its provider may keep after a lost connection, over all connections to it. */
export class KeptAnswer {
  readonly #keeping: Keeping;
  readonly #base_url: string;
  readonly #position: StreamPosition;
  #id: string | undefined;
  /** Its provider has begun to send it: one that has not stops when the connection is lost. */
  #isAnswered = false;
  #isOver = false;

  private constructor(keeping: Keeping, base_url: string) {
    this.#keeping = keeping;
    this.#base_url = upstreamUrl(base_url);
    this.#position = newPosition(keeping.counts);
    if (keeping.id.in === 'request') this.#id = randomBytes(ID_BYTES).toString('hex');
  }

  /** The answer to the original request; `undefined` where its provider does not keep it, or the client has it kept. */
  static of(
    target: RunTarget,
    run: Run,
    { choices }: RequestFacts,
    { capabilities }: RunContext,
  ): KeptAnswer | undefined {
    // Which of several choices have ended, only the connection knew on which they did.
    if (!run.wire.isKept || choices > 1) return undefined;
    const model = modelOf(target, run);
    const keeping = capabilities.dialect(target, model)?.keeps;
    if (!keeping || capabilities.keeps(target.name, model) === false) return undefined;
    const { id } = keeping;
    const isClients = id.in === 'request' && target.headers[id.header] !== undefined;
    return isClients ? undefined : new KeptAnswer(keeping, target.upstream.base_url);
  }

  /** The request for the answer, as one that has it kept. */
  asked(request: AttemptRequest): AttemptRequest {
    const { id } = this.#keeping;
    const position = this.#position;
    if (id.in === 'response' || this.#id === undefined) return { ...request, position };
    return { ...request, headers: { ...request.headers, [id.header]: this.#id }, position };
  }

  /** Takes how a connection to it ended. */
  observe({ end, phase, samples: traces }: AttemptReport): void {
    const { id } = this.#keeping;
    const told = traces.headers[id.header];
    if (id.in === 'response' && typeof told === 'string' && URL_SAFE.test(told)) this.#id ??= told;
    this.#isAnswered ||= phase !== 'connect';
    this.#isOver ||= isOver(end) || (end.kind === 'refused' && !this.#isAnswered);
  }

  /** What asks for the rest of it; `undefined` where that is not to be had. */
  get rest(): Pick<AttemptRequest, 'url' | 'position'> | undefined {
    const { value } = this.#position;
    const isKept = this.#isAnswered && !this.#isOver;
    if (!isKept || this.#id === undefined || value === undefined) return undefined;
    const url = this.#keeping.resumeUrl(this.#base_url, this.#id, value);
    return { url, position: this.#position };
  }

  /** What to `DELETE` once the answer is not needed any more, while its provider may still be generating it. */
  get stop_url(): string | undefined {
    if (this.#isOver || this.#id === undefined || !this.#position.isBegun) return undefined;
    return this.#keeping.stopUrl?.(this.#base_url, this.#id);
  }
}

/** The provider itself has come to an end with it, or never began. */
function isOver(end: AttemptEnd): boolean {
  switch (end.kind) {
    case 'eof':
      return end.done || end.residue !== undefined;
    case 'error_event':
    case 'bad_finish':
    case 'unusable':
    case 'replica_lost':
    // The place is behind the damage already, and what comes before it in the same piece was taken.
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
 * Stops an answer that is not needed any more, by a `DELETE` of this address or a `POST` to it. False if the provider does
 * not support that; `undefined` if it is unknown whether the provider has stopped.
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
    // A server error does not show whether the server supports it.
    return status < 300 ? true : status < 500 ? false : undefined;
  } catch (error) {
    if (!(error instanceof TransportFailure)) throw error;
    return undefined;
  } finally {
    cancelTimer();
  }
}
