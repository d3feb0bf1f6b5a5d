import type { Clock } from '../interrupts/interruption.ts';

/** One HTTP request to a provider. `body` is sent as it is. */
export interface TransportRequest {
  readonly method: string;
  /** Absolute, from configuration only. */
  readonly url: string;
  /** Lower-case names; hop-by-hop and `holdfast-*` headers already removed. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
  /** Aborting closes the connection (or resets the HTTP/2 stream) at once. */
  readonly signal: AbortSignal;
  /** Limit on DNS, TCP and TLS together. */
  readonly connect_ms: number;
}

export interface TransportResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /**
   * The body in the pieces in which it came. Not reading it holds the provider back (backpressure).
   * Ends normally only if the body ended properly; otherwise it throws a {@link TransportFailure}.
   */
  readonly body: AsyncIterable<Buffer>;
}

/** Opens requests. The one implementation speaks undici; tests of the pure loop use a simulated one. */
export interface Transport {
  /** Rejects with a {@link TransportFailure} when no response came. */
  open(request: TransportRequest): Promise<TransportResponse>;
  close(): Promise<void>;
}

/** The evidence of a broken connection: codes, never messages. */
export class TransportFailure extends Error {
  override readonly name = 'TransportFailure';
  /** The most specific code found on the `cause` chain: `ECONNRESET`, `UND_ERR_SOCKET`, `ERR_HTTP2_STREAM_ERROR`, … */
  readonly code: string;
  /** GOAWAY code of the HTTP/2 session that carried the stream, if it sent one. */
  readonly goaway: number | undefined;
  /** Set when a clock of ours ran out and we closed the connection ourselves. */
  readonly clock: Clock | undefined;

  constructor(code: string, details: { goaway?: number; clock?: Clock; cause?: unknown } = {}) {
    super(`upstream connection failed: ${code}`, { cause: details.cause });
    this.code = code;
    this.goaway = details.goaway;
    this.clock = details.clock;
  }
}
