import { randomBytes } from 'node:crypto';
import type { AttemptEnd } from '../../../interrupts/classify.ts';
import type { AttemptRequest } from '../../upstream/attempt.ts';
import { newPosition, type StreamPosition } from '../../upstream/stream-position.ts';
import { type RunTarget, upstreamUrl } from '../../upstream/target.ts';
import { TransportFailure } from '../../upstream/transport.ts';
import type { Keeping } from '../../wires/common/dialect.ts';
import type { AttemptReport } from '../context/attempt-report.ts';
import type { RunContext } from '../context/run-context.ts';

/** The name of an answer is enough to read it, so it must be impossible to guess. */
const ID_BYTES = 16;
const URL_SAFE = /^[\w-]+$/;

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

  /** `undefined` where the client has the answer kept for itself. */
  static at({ upstream, headers }: RunTarget, keeping: Keeping): KeptAnswer | undefined {
    const { id } = keeping;
    return id.in === 'request' && headers[id.header] !== undefined
      ? undefined
      : new KeptAnswer(keeping, upstream.base_url);
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

/** A provider that takes longer is left to itself. */
const STOP_WAIT_MAX_MS = 2_000;

/**
 * Stops an answer that is not needed any more, by a `DELETE` of this address. False if the provider does not support
 * that; `undefined` if it is unknown whether the provider has stopped.
 */
export async function stopAnswer(
  url: string,
  { upstream, headers }: RunTarget,
  { configuration, transport, time }: RunContext,
): Promise<boolean | undefined> {
  const abort = new AbortController();
  const cancelTimer = time.after(STOP_WAIT_MAX_MS, () => abort.abort());
  const { 'content-type': _, ...sent } = headers;
  const { connect_ms } = { ...configuration.clocks, ...upstream.clocks };
  try {
    const { status, body } = await transport.open({
      method: 'DELETE',
      url,
      headers: sent,
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
