import { randomName } from './random-name.ts';
import type { ReceivedEvents } from './received-events.ts';
import { fieldsOf, type Wire, wireAt } from './wires.ts';

/** A request for an answer that can be sent as often as needed. */
export interface WireRequest {
  readonly url: URL;
  readonly wire: Wire;
  /** The URL of the replica, or of the load balancer, that the caller named. */
  readonly root: string;
  /** The answer is to be streamed. */
  readonly isStream: boolean;
  /** The caller's, with an `Idempotency-Key`, and for a stream with what makes the run resumable. */
  readonly headers: Headers;
  readonly body: string;
  /** The caller's. */
  readonly signal: AbortSignal | undefined;
  /** Whatever else the caller said about the request. */
  readonly init: RequestInit;
}

/** What `fetch` takes over from a `Request`, besides its URL, method, headers, body and signal. */
const INHERITED = [
  'cache',
  'credentials',
  'integrity',
  'keepalive',
  'mode',
  'redirect',
  'referrer',
  'referrerPolicy',
] as const satisfies readonly (keyof RequestInit & keyof Request)[];

/**
 * The request, if it is on one of the wires and can be sent again; undefined for every other. Nothing that the caller
 * passed is consumed. A body that is a stream can be sent only once, and a request with `Last-Event-ID` is resumed by
 * its caller, who counts from there: both are left alone.
 */
export async function readWireRequest(
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<WireRequest | undefined> {
  const request = typeof input === 'object' && 'url' in input ? input : undefined;
  if ((init.method ?? request?.method)?.toUpperCase() !== 'POST') return undefined;
  const url = absolute(request ? request.url : String(input));
  const at = url && wireAt(url.pathname);
  if (!at) return undefined;
  const headers = new Headers(init.headers ?? request?.headers);
  if (headers.has('last-event-id')) return undefined;
  const { body: given, headers: _headers, method: _method, signal: ownSignal, ...rest } = init;
  const signal = (ownSignal === undefined ? request?.signal : ownSignal) ?? undefined;
  const body = await textOf(given ?? request);
  const fields = body === undefined ? undefined : fieldsOf(body);
  if (body === undefined || !fields) return undefined;

  const isStream = fields.stream === true;
  if (isStream) headers.set('holdfast-resume', '1');
  if (!headers.has('idempotency-key')) headers.set('idempotency-key', `holdfast-${randomName()}`);
  return {
    url,
    wire: at.wire,
    root: url.origin + at.prefix,
    isStream,
    headers,
    body,
    signal,
    init: { ...inherited(request), ...rest },
  };
}

/** `Request` resolves what is relative to the page, where there is one. */
function absolute(url: string): URL | undefined {
  try {
    return new URL(new Request(url).url);
  } catch {
    return undefined;
  }
}

async function textOf(body: RequestInit['body'] | Request): Promise<string | undefined> {
  if (typeof body === 'string') return body;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body as Uint8Array);
    } catch {
      return undefined;
    }
  }
  return body && 'clone' in body && !body.bodyUsed ? body.clone().text() : undefined;
}

function inherited(request: Request | undefined): RequestInit {
  const init: Record<string, unknown> = {};
  // Some runtimes have no such fields, and refuse an `init` that has them.
  for (const name of INHERITED) if (request?.[name] !== undefined) init[name] = request[name];
  return init;
}

export interface RunRequest {
  readonly url: string;
  readonly init: RequestInit;
}

/** What is asked of replicas on behalf of one caller, all with the caller's own credential. */
export class RunRequests {
  readonly #request: WireRequest;
  /** The run that the caller named, empty if it named none. */
  readonly run: string;

  constructor(request: WireRequest) {
    this.#request = request;
    this.run = request.headers.get('holdfast-run-id') ?? '';
  }

  /** The caller's own request. Repeated, its `Idempotency-Key` leads to the same run. */
  original(root: string): RunRequest {
    const { url, wire, root: named, headers, body } = this.#request;
    const here = root === named ? url.href : `${root}/v1${wire.path}${url.search}`;
    return this.#to(here, { method: 'POST', headers, body });
  }

  /** The rest of a run after what was received of it. `isWhole`: the caller's own request goes along. */
  rest(root: string, run: string, { cursor, tail, id }: ReceivedEvents, isWhole: boolean): RunRequest {
    const { wire, body: asked } = this.#request;
    const headers = this.#headersWithout('content-length');
    headers.set('content-type', 'application/json');
    // Its epoch distinguishes events that were lost with a log from those that took their place.
    if (id !== '') headers.set('last-event-id', id);
    const request = isWhole ? { path: `/v1${wire.path}`, body: asked } : undefined;
    const body = JSON.stringify({ cursor, tail, request });
    return this.#to(`${urlOf(root, run)}/resume`, { method: 'POST', headers, body });
  }

  /** Of a run whose id is not known yet, `run` is empty: the key stands for it. */
  cancellation(root: string, run: string): RunRequest {
    const headers = this.#headersWithout('content-type', 'content-length');
    if (run !== '') headers.delete('idempotency-key');
    return this.#to(run === '' ? `${root}${RUNS_PATH}` : urlOf(root, run), { method: 'DELETE', headers });
  }

  #to(url: string, init: RequestInit): RunRequest {
    return { url, init: { ...this.#request.init, ...init } };
  }

  #headersWithout(...names: string[]): Headers {
    const headers = new Headers(this.#request.headers);
    for (const name of names) headers.delete(name);
    return headers;
  }
}

const RUNS_PATH = '/holdfast/v1/runs';

const urlOf = (root: string, run: string): string => `${root}${RUNS_PATH}/${encodeURIComponent(run)}`;
