import type { Dispatcher } from 'undici';
import type { ConnectionSettings } from '../../config/load.ts';
import { transportCode } from '../../interrupts/classify.ts';
import { BodyQueue } from './body-queue.ts';
import { type Connection, ConnectionObserver, cancelStream } from './connection-observer.ts';
import { connectionsTo } from './connections.ts';
import {
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts';

type Controller = Dispatcher.DispatchController;

const ABORTED = 'UND_ERR_ABORTED';
const CONNECT_TIMEOUT = 'UND_ERR_CONNECT_TIMEOUT';
/** RFC 9110 §15: larger statuses are invalid. */
const STATUS_MAX = 599;
const INVALID_STATUS = 'HPE_INVALID_STATUS';
const STREAM_RESET = 'ERR_HTTP2_STREAM_ERROR';

/** Connection settings by origin (`https://llm.internal:8443`); other origins use the defaults. */
type Connections = Readonly<Record<string, ConnectionSettings>>;

/**
 * HTTP/1.1 and HTTP/2 (by ALPN) over kept-alive connections, one per concurrent request; the API's own limits bound
 * both. No retries, redirects or decompression, and no timeouts except `connect_ms`.
 *
 * If a request is aborted with a {@link TransportFailure} as the reason, its reader gets that failure. A response must
 * be read to its end or aborted; otherwise it keeps its connection.
 */
export const createUndiciTransport = (connections: Connections = {}): Transport =>
  new UndiciTransport(connections);

class UndiciTransport implements Transport {
  readonly #connections: Connections;
  readonly #observer = new ConnectionObserver();
  /** By origin and connect limit; the configuration bounds their number. */
  readonly #upstreams = new Map<string, Upstream>();
  #closed: boolean = false;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    if (this.#closed) throw new TransportFailure('UND_ERR_DESTROYED');
    if (request.signal.aborted) throw abortFailure(request.signal);
    const url = new URL(request.url);
    return this.#upstream(url.origin, request.connect_ms).open(request, url);
  }

  /** Breaks open connections. Drain the runs first. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#observer.close();
    await Promise.all(Array.from(this.#upstreams.values(), (upstream) => upstream.close()));
  }

  #upstream(origin: string, connect_ms: number): Upstream {
    const key = `${connect_ms} ${origin}`;
    const known = this.#upstreams.get(key);
    if (known) return known;
    const upstream = new Upstream(origin, connect_ms, this.#connections[origin] ?? {}, this.#observer);
    this.#upstreams.set(key, upstream);
    return upstream;
  }
}

class Upstream {
  readonly #observer: ConnectionObserver;
  readonly #dispatcher: Dispatcher;
  /** Requests that have neither a response nor a failure yet. */
  #unanswered = 0;

  constructor(
    origin: string,
    connect_ms: number,
    settings: ConnectionSettings,
    observer: ConnectionObserver,
  ) {
    this.#observer = observer;
    this.#dispatcher = connectionsTo(origin, settings, {
      connect_ms,
      isWanted: () => this.#unanswered > 0,
    });
  }

  open(request: TransportRequest, url: URL): Promise<TransportResponse> {
    this.#unanswered++;
    const exchange = new Exchange(request, url, this.#observer, () => this.#unanswered--);
    this.#dispatcher.dispatch(exchange.options, exchange);
    exchange.limitConnecting(request.connect_ms);
    return exchange.response;
  }

  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }
}

/** One request and its response, as undici's dispatch handler; also the body of the response. */
class Exchange extends BodyQueue implements Dispatcher.DispatchHandler {
  /** Rejects with a {@link TransportFailure} if there is no response. */
  readonly response: Promise<TransportResponse>;
  readonly options: Dispatcher.DispatchOptions;
  readonly #signal: AbortSignal;
  readonly #observer: ConnectionObserver;
  readonly #settleResponse: PromiseWithResolvers<TransportResponse>;
  #onAnswered: (() => void) | undefined;
  #connect_timer: NodeJS.Timeout | undefined;
  #controller: Controller | undefined;
  #connection: Connection | undefined;
  /** Pieces from the current read of the connection. */
  #pieces: Buffer[] = [];
  #closed: boolean = false;

  /** `url`: the request's URL. `onAnswered`: called once, when the response begins or can no longer arrive. */
  constructor(request: TransportRequest, url: URL, observer: ConnectionObserver, onAnswered: () => void) {
    super();
    this.#settleResponse = Promise.withResolvers();
    this.response = this.#settleResponse.promise;
    this.options = dispatchOptions(request, url);
    this.#observer = observer;
    this.#onAnswered = onAnswered;
    this.#signal = request.signal;
    this.#signal.addEventListener('abort', this.#onAbort);
  }

  /**
   * Starts the connect timeout unless the request was already sent. undici limits each connection attempt, but not how
   * long a request waits for the attempts of others.
   */
  limitConnecting(connect_ms: number): void {
    if (this.#controller || this.#closed) return;
    this.#connect_timer = setTimeout(() => {
      this.#abort(new TransportFailure(CONNECT_TIMEOUT, { clock: 'connect' }));
    }, connect_ms);
  }

  /** Called again if undici repeats on another connection a request that an HTTP/2 session refused. */
  onRequestStart(controller: Controller): void {
    clearTimeout(this.#connect_timer);
    this.#controller = controller;
    if (this.#closed) controller.abort(new TransportFailure(ABORTED));
    else this.#connection = this.#observer.observe();
  }

  onResponseStart(controller: Controller, status: number, headers: TransportResponse['headers']): void {
    // As slices of the read buffer, they would keep all of it in memory while the stream is open.
    controller.rawHeaders = null;
    const informational = status < 200;
    if (informational) return;
    if (status > STATUS_MAX) {
      this.#abort(new TransportFailure(INVALID_STATUS));
      return;
    }
    this.#answered();
    this.#settleResponse.resolve({ status, headers, body: this });
  }

  /** Called per chunk of the transfer coding; one read may contain a hundred. */
  onResponseData(_controller: Controller, piece: Buffer): void {
    if (this.#pieces.push(piece) === 1) queueMicrotask(() => this.#handOver());
  }

  onResponseEnd(): void {
    const { socket, stream } = this.#connection ?? {};
    // The response only seems complete: see ConnectionObserver.
    if (stream?.rstCode) this.#fail(STREAM_RESET);
    else if (socket?.errored) this.#fail(transportCode(socket.errored), socket.errored);
    else {
      this.#handOver();
      this.#close();
      this.end();
    }
  }

  onResponseError(_controller: Controller | null, error: unknown): void {
    if (this.#closed) return;
    const socket_error = this.#connection?.socket?.errored;
    // undici may report only its parser's view of the socket's end.
    const cause = socket_error && socket_error !== error ? new AggregateError([error, socket_error]) : error;
    this.#fail(transportCode(cause), cause);
  }

  #handOver(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.pushAll(pieces);
  }

  protected pause(): void {
    this.#controller?.pause();
  }

  protected resume(): void {
    this.#controller?.resume();
  }

  protected abandon(): void {
    this.#abort(new TransportFailure(ABORTED));
  }

  readonly #onAbort = (): void => this.#abort(abortFailure(this.#signal));

  #abort(failure: TransportFailure): void {
    this.#close();
    this.#settleResponse.reject(failure);
    this.discard(failure);
    if (this.#connection) cancelStream(this.#connection);
    this.#controller?.abort(failure);
  }

  #fail(code: string, cause?: unknown): void {
    const goaway = this.#connection?.session?.goaway;
    const failure = new TransportFailure(code, {
      cause,
      ...(goaway !== undefined && { goaway }),
      ...(code === CONNECT_TIMEOUT && { clock: 'connect' }),
    });
    this.#handOver();
    this.#close();
    this.#settleResponse.reject(failure);
    this.fail(failure);
  }

  #close(): void {
    this.#closed = true;
    clearTimeout(this.#connect_timer);
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#answered();
  }

  #answered(): void {
    this.#onAnswered?.();
    this.#onAnswered = undefined;
    // An abandoned request that waits for a connection stays in undici's queue; its body need not.
    this.options.body = null;
  }
}

function dispatchOptions(
  { method, headers, query, body, silence_ms, verbatim_path }: TransportRequest,
  { origin, pathname, search }: URL,
): Dispatcher.DispatchOptions {
  return {
    origin,
    path: withQuery(verbatim_path ?? pathname + search, query),
    method,
    headers: verbatim_path === undefined ? { 'accept-encoding': 'identity', ...headers } : headers,
    body: body ?? null,
    ...(silence_ms !== undefined && { headersTimeout: silence_ms, bodyTimeout: silence_ms }),
  };
}

/** Parameters that aren't replaced stay verbatim. */
function withQuery(path: string, query: TransportRequest['query']): string {
  if (!query) return path;
  const [address = '', ...search] = path.split('?');
  const kept = search
    .join('?')
    .split('&')
    .filter((written) => {
      const [name] = new URLSearchParams(written).keys();
      return name !== undefined && !Object.hasOwn(query, name);
    });
  return `${address}?${[...kept, new URLSearchParams(query)].join('&')}`;
}

/** The error for an aborted request: the reason itself if it is a failure. */
const abortFailure = ({ reason }: AbortSignal): TransportFailure =>
  reason instanceof TransportFailure ? reason : new TransportFailure(ABORTED, { cause: reason });
