import type { Readable } from 'node:stream';
import type { Clock } from '../../interrupts/interruption.ts';

/** One HTTP request to a provider. `body` is sent as it is. */
export interface TransportRequest {
  readonly method: string;
  /** Absolute, from configuration only. */
  readonly url: string;
  /** Lower-case names; hop-by-hop and `holdfast-*` headers already removed. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Parameters of the query, in place of those of these names in the address. */
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | Readable;
  /** Aborting closes the connection (or resets the HTTP/2 stream) at once. */
  readonly signal: AbortSignal;
  /** Limit on DNS, TCP and TLS together. */
  readonly connect_ms: number;
  /** Limit on the wait for the response and for each piece of its body; none without it. */
  readonly silence_ms?: number;
  /**
   * Path and query in place of those of `url`, which are sent as URL parsing spells them. For a request that is the
   * client's own: not even `accept-encoding` is added to it.
   */
  readonly verbatim_path?: string;
}

/** An address of an upstream. `path` is below its base URL, with which it is configured with or without a final slash. */
export const upstreamUrl = (base_url: string, path = ''): string => base_url.replace(/\/$/, '') + path;

export interface TransportResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: ResponseBody;
}

/**
 * Takes one piece. May return a promise, until which it is handed no other. `isFollowed`: the next one has come already,
 * and is handed over as soon as this returns without a promise, unless the body is aborted here and now.
 */
export type TakePiece = (piece: Buffer, isFollowed?: boolean) => Promise<void> | undefined;

export interface ResponseBody {
  /**
   * Hands over the body in the pieces in which it comes, each as soon as it is there; to be called once. What `take`
   * is not ready for is kept, and holds the provider back (backpressure).
   *
   * Resolves only if the body ended properly, otherwise rejects with a {@link TransportFailure}. An error of `take`
   * closes the connection and is what this rejects with.
   */
  consume(take: TakePiece): Promise<void>;
}

/** A body that is here already. */
export const bodyOf = (bytes: Buffer): ResponseBody => ({
  async consume(take) {
    if (bytes.length > 0) await take(bytes);
  },
});

/** Opens requests. The one implementation speaks undici; tests of the pure loop use a simulated one. */
export interface Transport {
  /** Rejects with a {@link TransportFailure} when no response came. */
  open(request: TransportRequest): Promise<TransportResponse>;
  /** What adds nothing to a request, where this one does: for requests that are not the client's. */
  readonly bare?: Transport;
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
