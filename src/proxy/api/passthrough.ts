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

/** The public prefix; the path of `base_url` takes its place. */
const PREFIX = '/v1';

/**
 * Hands requests to an upstream and its answers back, as they come: any method, no buffering, no decoding, no retries.
 * Each side's backpressure holds back the other. A body that breaks off upstream breaks off at the client too.
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

  /** An answer that does not stream may take as long to begin as an attempt may take in all; no other clock applies. */
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

/** Rejects when the answer breaks off, or when `gone` aborts because its client left. */
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

/** `undefined` for a path that could climb out of the upstream's API, where a configured key has no business. */
function upstreamPath(url: string, { base_url }: UpstreamConfiguration): string | undefined {
  const [path = ''] = url.split('?', 1);
  if (!path.startsWith(`${PREFIX}/`) || mayClimb(path)) return undefined;
  return new URL(base_url).pathname.replace(/\/$/, '') + url.slice(PREFIX.length);
}

/** Servers differ in how often they decode a path, in what they take for a separator, and in what follows `;`. */
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
