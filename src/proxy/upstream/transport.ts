import type { Readable } from 'node:stream';
import type { Clock } from '../../interrupts/interruption.ts';

/** One HTTP request to a provider. `body` is sent unchanged. */
export interface TransportRequest {
  readonly method: string;
  /** Absolute, from configuration only. */
  readonly url: string;
  /** Lower-case names; hop-by-hop and `holdfast-*` headers already removed. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Query parameters that replace those of the same names in the URL. */
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | Readable;
  /** Aborting closes the connection (or resets the HTTP/2 stream) at once. */
  readonly signal: AbortSignal;
  /** Limit on DNS, TCP and TLS together. */
  readonly connect_ms: number;
  /** Limit on the wait for the response and for each piece of its body; absent: no limit. */
  readonly silence_ms?: number;
  /**
   * Path and query that replace those of `url` and are sent verbatim, without URL normalisation. Meant for a client's
   * own request: not even `accept-encoding` is added.
   */
  readonly verbatim_path?: string;
}

/** The URL below an upstream's base URL, which may end with a slash. */
export const upstreamUrl = (base_url: string, path = ''): string => base_url.replace(/\/$/, '') + path;

export interface TransportResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: ResponseBody;
}

/**
 * Handles one piece. May return a promise; the next piece follows once it resolves. `isFollowed`: another piece has
 * already arrived, and follows as soon as this returns without a promise, unless the body is aborted meanwhile.
 */
export type TakePiece = (piece: Buffer, isFollowed?: boolean) => Promise<void> | undefined;

export interface ResponseBody {
  /**
   * Hands over the body in pieces as they arrive; call it once. Pieces that `take` is not ready for are queued, with
   * backpressure to the provider.
   *
   * Resolves only if the body ended cleanly, and rejects with a {@link TransportFailure} otherwise. If `take` throws,
   * the connection is closed and this rejects with that error.
   */
  consume(take: TakePiece): Promise<void>;
}

/** A body that has already been read. */
export const bodyOf = (bytes: Buffer): ResponseBody => ({
  async consume(take) {
    if (bytes.length > 0) await take(bytes);
  },
});

/** Opens requests. Production uses undici; tests of the relay use a simulation. */
export interface Transport {
  /** Rejects with a {@link TransportFailure} if there is no response. */
  open(request: TransportRequest): Promise<TransportResponse>;
  /** A transport without this one's additions, for requests that aren't a client's. */
  readonly bare?: Transport;
  close(): Promise<void>;
}

/** The evidence of a broken connection: codes, but no messages. */
export class TransportFailure extends Error {
  override readonly name = 'TransportFailure';
  /** The most specific code in the `cause` chain: `ECONNRESET`, `UND_ERR_SOCKET`, `ERR_HTTP2_STREAM_ERROR`, … */
  readonly code: string;
  /** GOAWAY code of the stream's HTTP/2 session, if it sent one. */
  readonly goaway: number | undefined;
  /** Set if one of our clocks expired and we closed the connection ourselves. */
  readonly clock: Clock | undefined;

  constructor(code: string, details: { goaway?: number; clock?: Clock; cause?: unknown } = {}) {
    super(`upstream connection failed: ${code}`, { cause: details.cause });
    this.code = code;
    this.goaway = details.goaway;
    this.clock = details.clock;
  }
}
