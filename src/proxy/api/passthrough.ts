import type { IncomingMessage, ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import tls from 'node:tls';
import type { Logger } from 'pino';
import { type Dispatcher, Pool } from 'undici';
import type { CertificateAuthorities } from '../../config/certificates.ts';
import type { Configuration, UpstreamConfiguration } from '../../config/configuration.ts';
import { transportCode } from '../../interrupts/transport-code.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { limitStall } from '../downstream/client-stall.ts';
import type { NoticeForm } from '../run/notices/notice-form.ts';
import { type Headers, requestHeaders, responseHeaders } from '../upstream/headers.ts';
import type { Target } from '../upstream/target.ts';
import { errorBodyOn } from '../wires/common/wire.ts';
import { wireAt } from '../wires/registry.ts';

/** The public prefix; the path of `base_url` takes its place. */
const PREFIX = '/v1';

/**
 * Hands requests to an upstream and its answers back, as they come: any method, no buffering, no decoding, no retries.
 * Each side's backpressure holds back the other. A body that breaks off upstream breaks off at the client too.
 */
export class PassThrough {
  readonly #pools: ReadonlyMap<string, Pool>;
  readonly #client_stall_ms: number;
  readonly #log: Logger;

  constructor(configuration: Configuration, authorities: CertificateAuthorities, log: Logger) {
    this.#client_stall_ms = configuration.limits.client_stall_ms;
    this.#log = log;
    this.#pools = new Map(
      Object.entries(configuration.upstreams).map(([name, upstream]) => [
        name,
        poolOf(upstream, waitLimit(upstream, configuration), authorities),
      ]),
    );
  }

  /**
   * Resolves when the response was sent or its client is gone; never rejects. `body` is sent in place of the
   * request's own where that was read already, with the notices that `form` puts into it.
   */
  async forward(
    request: IncomingMessage,
    response: ServerResponse,
    { name, upstream }: Target,
    body?: string,
    form?: NoticeForm,
  ): Promise<void> {
    const { method = '', url = '' } = request;
    const path = upstreamPath(url, upstream);
    if (path === undefined) return answer(response, apiError('not_found', { method, path: url }), url);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    limitStall(response, this.#client_stall_ms);
    let refused = false;
    try {
      do {
        await this.#pool(name).stream(
          {
            method: method as Dispatcher.HttpMethod,
            path,
            headers: headersOf(request, upstream, body),
            body: body === undefined ? unreadBody(request) : (form?.bodyOf(body) ?? body),
            signal: gone.signal,
          },
          ({ statusCode, headers }) => {
            refused = form?.refused(statusCode) ?? false;
            return refused ? nowhere() : response.writeHead(statusCode, responseHeaders(headers));
          },
        );
      } while (refused);
    } catch (error) {
      this.#fail(transportCode(error), response, name, url);
    }
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#pools.values(), (pool) => pool.destroy()));
  }

  #pool(name: string): Pool {
    const pool = this.#pools.get(name);
    if (!pool) throw new Error(`the configuration has no upstream ${name}`);
    return pool;
  }

  #fail(code: string, response: ServerResponse, upstream: string, url: string): void {
    if (response.destroyed) return;
    this.#log.warn({ upstream, code, begun: response.headersSent }, 'pass-through failed');
    if (response.headersSent) response.destroy();
    else if (code === 'UND_ERR_HEADERS_TIMEOUT')
      answer(response, apiError('upstream_timeout', { upstream }), url);
    else answer(response, apiError('upstream_unreachable', { upstream, reason: code }), url);
  }
}

function answer(response: ServerResponse, { status, body }: ApiError, url: string): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(errorBodyOn(wireAt(url), body));
}

/** An answer that does not stream may take as long to begin as an attempt may take in all; no other clock applies. */
const waitLimit = (upstream: UpstreamConfiguration, { clocks }: Configuration) => {
  const { connect_ms, attempt_ms } = { ...clocks, ...upstream.clocks };
  return { connect_ms, attempt_ms };
};

function poolOf(
  { base_url }: UpstreamConfiguration,
  { connect_ms, attempt_ms }: { connect_ms: number; attempt_ms: number },
  authorities: CertificateAuthorities,
): Pool {
  const { origin } = new URL(base_url);
  const ca = authorities[origin];
  return new Pool(origin, {
    allowH2: true,
    headersTimeout: attempt_ms,
    bodyTimeout: attempt_ms,
    connect: {
      timeout: connect_ms,
      ...(ca !== undefined && { ca: [...tls.getCACertificates('default'), ca] }),
    },
  });
}

/** `undefined` for a path that could climb out of the upstream's API, where a configured key has no business. */
function upstreamPath(url: string, { base_url }: UpstreamConfiguration): string | undefined {
  const [path = ''] = url.split('?', 1);
  if (!path.startsWith(`${PREFIX}/`) || hasDotSegment(path)) return undefined;
  return new URL(base_url).pathname.replace(/\/$/, '') + url.slice(PREFIX.length);
}

const hasDotSegment = (path: string): boolean =>
  path
    .replace(/%2e/gi, '.')
    .split(/[/\\]|%2f|%5c/i)
    .some((segment) => segment === '.' || segment === '..');

/** A body that streams keeps its length; one that was read already gets it from the transport. */
function headersOf(
  request: IncomingMessage,
  upstream: UpstreamConfiguration,
  body: string | undefined,
): Headers {
  const headers = requestHeaders(request.headers, upstream, wireAt(request.url ?? ''));
  const length = request.headers['content-length'];
  return body === undefined && length !== undefined ? { ...headers, 'content-length': length } : headers;
}

function unreadBody(request: IncomingMessage): IncomingMessage | null {
  const { headers } = request;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return hasBody ? request : null;
}

/** For an answer that its client is not to see. */
const nowhere = (): Writable => new Writable({ write: (_piece, _encoding, done) => done() });
