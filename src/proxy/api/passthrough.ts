import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Configuration, UpstreamConfiguration } from '../../config/configuration.ts';
import { transportCode } from '../../interrupts/classify.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { limitStall } from '../downstream/client-response.ts';
import type { NoticeForm } from '../run/notices/noticed-relay.ts';
import { type Headers, requestHeaders, responseHeaders } from '../upstream/headers.ts';
import type { Target } from '../upstream/target.ts';
import type { Transport, TransportRequest, TransportResponse } from '../upstream/transport.ts';
import { unreadBody } from '../upstream/unread-body.ts';
import { errorBodyOn } from '../wires/common/wire.ts';
import { wireAt } from '../wires/registry.ts';

/** The public prefix, which the path of `base_url` replaces. */
const PREFIX = '/v1';

/**
 * Forwards requests to an upstream and streams the answers back unchanged: any method, no buffering, no decoding, no
 * retries. Backpressure applies in both directions. If the upstream body breaks off, so does the client's.
 */
export class PassThrough {
  readonly #configuration: Configuration;
  readonly #transport: Transport;
  readonly #log: Logger;

  constructor(configuration: Configuration, transport: Transport, log: Logger) {
    this.#configuration = configuration;
    this.#transport = transport;
    this.#log = log;
  }

  /**
   * Resolves when the response is sent or the client has disconnected; never rejects. `body`: replaces the request's
   * own body if that was already read. `form` adds notices to it.
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
    limitStall(response, this.#configuration.limits.client_stall_ms);
    const open = (sent: string | IncomingMessage | undefined) =>
      this.#transport.open({
        method,
        url: upstream.base_url,
        verbatim_path: path,
        headers: headersOf(request, upstream, body),
        query: upstream.query,
        ...(sent !== undefined && { body: sent }),
        signal: gone.signal,
        ...this.#limits(upstream),
      });
    try {
      for (;;) {
        const answered = await open(body === undefined ? unreadBody(request) : (form?.bodyOf(body) ?? body));
        if (!form?.refused(answered.status)) return await deliver(answered, upstream, response, gone.signal);
        await answered.body.consume(() => undefined);
      }
    } catch (error) {
      this.#fail(transportCode(error), response, name, url);
    }
  }

  /** An answer without a stream may take as long to begin as a whole attempt; no other clock applies. */
  #limits(upstream: UpstreamConfiguration): Pick<TransportRequest, 'connect_ms' | 'silence_ms'> {
    const { connect_ms, attempt_ms } = { ...this.#configuration.clocks, ...upstream.clocks };
    return { connect_ms, silence_ms: attempt_ms };
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

/** Rejects when the answer breaks off, or when `gone` aborts because the client disconnected. */
async function deliver(
  { status, headers, body }: TransportResponse,
  upstream: UpstreamConfiguration,
  response: ServerResponse,
  gone: AbortSignal,
): Promise<void> {
  response.writeHead(status, responseHeaders(headers, upstream));
  await body.consume((piece) => (response.write(piece) ? undefined : drained(response, gone)));
  response.end();
}

const drained = async (response: ServerResponse, signal: AbortSignal): Promise<void> =>
  void (await once(response, 'drain', { signal }));

function answer(response: ServerResponse, { status, body }: ApiError, url: string): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(errorBodyOn(wireAt(url), body));
}

/** `undefined` for a path that could leave the upstream's API, where the configured key must not be sent. */
function upstreamPath(url: string, { base_url }: UpstreamConfiguration): string | undefined {
  const [path = ''] = url.split('?', 1);
  if (!path.startsWith(`${PREFIX}/`) || mayClimb(path)) return undefined;
  return new URL(base_url).pathname.replace(/\/$/, '') + url.slice(PREFIX.length);
}

/** Servers differ in how often they decode a path, which separators they accept, and how they treat `;`. */
function mayClimb(path: string): boolean {
  let decoded = path;
  for (let before = ''; before !== decoded; ) {
    before = decoded;
    decoded = decoded.replace(/%25/g, '%');
  }
  if (/%00|\0/.test(decoded)) return true;
  return decoded
    .replace(/%2e/gi, '.')
    .replace(/%3b/gi, ';')
    .split(/[/\\]|%2f|%5c/i)
    .some((segment) => /^\.\.?(;|$)/.test(segment));
}

/** A streamed body keeps its length; the transport sets it for a body that was already read. */
function headersOf(
  request: IncomingMessage,
  upstream: UpstreamConfiguration,
  body: string | undefined,
): Headers {
  const headers = requestHeaders(request.headers, upstream, wireAt(request.url ?? ''));
  const length = request.headers['content-length'];
  return body === undefined && length !== undefined ? { ...headers, 'content-length': length } : headers;
}
