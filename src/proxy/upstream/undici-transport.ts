import tls from 'node:tls';
import { buildConnector, Pool } from 'undici';
import { ConnectionObserver } from './connection-observer.ts';
import { abortFailure, Exchange } from './exchange.ts';
import {
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts';

interface UndiciTransportOptions {
  /** PEM of a certificate authority to trust besides the system's, by origin (`https://llm.internal:8443`). */
  readonly ca?: Readonly<Record<string, string>>;
}

/**
 * HTTP/1.1 and HTTP/2 (by ALPN) over kept-alive connections. As many connections as there are concurrent requests:
 * the API's own limits bound both. No retries, redirects or decompression, and no clocks but `connect_ms`.
 *
 * Aborting a request's signal with a {@link TransportFailure} as the reason makes that the failure its reader sees.
 * A response must be read to its end or aborted; one left alone keeps its connection.
 */
export function createUndiciTransport(options: UndiciTransportOptions = {}): Transport {
  return new UndiciTransport(options);
}

class UndiciTransport implements Transport {
  readonly #trust = new Map<string, tls.SecureContext>();
  readonly #observer = new ConnectionObserver();
  /** By origin and connect limit; both come from configuration, which bounds their number. */
  readonly #upstreams = new Map<string, Upstream>();
  #closed: boolean = false;

  constructor(options: UndiciTransportOptions) {
    for (const [origin, ca] of Object.entries(options.ca ?? {})) this.#trust.set(origin, trusting(ca));
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    if (this.#closed) throw new TransportFailure('UND_ERR_DESTROYED');
    if (request.signal.aborted) throw abortFailure(request.signal);
    const url = new URL(request.url);
    return this.#upstream(url.origin, request.connect_ms).open(request, url);
  }

  /** Breaks what is still open: the runs were drained before. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#observer.close();
    await Promise.all(Array.from(this.#upstreams.values(), (upstream) => upstream.close()));
  }

  #upstream(origin: string, connect_ms: number): Upstream {
    const key = `${connect_ms} ${origin}`;
    const known = this.#upstreams.get(key);
    if (known) return known;
    const upstream = new Upstream(origin, connect_ms, this.#trust.get(origin), this.#observer);
    this.#upstreams.set(key, upstream);
    return upstream;
  }
}

class Upstream {
  readonly #observer: ConnectionObserver;
  readonly #pool: Pool;
  /** Requests that are still owed a response, or the news that there will be none. */
  #unanswered = 0;

  constructor(
    origin: string,
    connect_ms: number,
    trust: tls.SecureContext | undefined,
    observer: ConnectionObserver,
  ) {
    this.#observer = observer;
    const connect = buildConnector({
      allowH2: true,
      timeout: connect_ms,
      ...(trust && { secureContext: trust }),
    });
    this.#pool = new Pool(origin, {
      allowH2: true,
      bodyTimeout: 0,
      headersTimeout: 0,
      // undici cannot take back a request that waits for a connection. Were connections tried for requests that
      // have since been given up, new requests would wait behind each of them in turn.
      connect: (options, callback) =>
        this.#unanswered > 0
          ? connect(options, callback)
          : queueMicrotask(() => callback(new Error('not needed'), null)),
    });
  }

  open(request: TransportRequest, url: URL): Promise<TransportResponse> {
    this.#unanswered++;
    const exchange = new Exchange(request, url, this.#observer, () => this.#unanswered--);
    this.#pool.dispatch(exchange.options, exchange);
    exchange.limitConnecting(request.connect_ms);
    return exchange.response;
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

/** Made once per origin: parsing the system's authorities for every connection would cost milliseconds. */
const trusting = (ca: string): tls.SecureContext =>
  tls.createSecureContext({ ca: [...tls.getCACertificates('default'), ca] });
