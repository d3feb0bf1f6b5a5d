import { randomName } from './random-name.ts';
import type { ReceivedEvents } from './received-events.ts';
import { fieldsOf, type Wire, wireAt } from './wires.ts';

/** A request for an answer, which the client can send as often as needed. */
export interface WireRequest {
  readonly url: URL;
  readonly wire: Wire;
  /** The root of the replica or load balancer that the caller named. */
  readonly root: string;
  /** Whether the caller wants a stream. */
  readonly isStream: boolean;
  /** The caller's headers, with an `Idempotency-Key`; for a stream, also with the header that makes the run resumable. */
  readonly headers: Headers;
  readonly body: string;
  /** The caller's. */
  readonly signal: AbortSignal | undefined;
  /** The caller's other settings for the request. */
  readonly init: RequestInit;
}

/** What `fetch` copies from a `Request`, besides its URL, method, headers, body and signal. */
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
 * The request, if it's on one of the wires and can be sent again; undefined for every other. It doesn't consume anything
 * that the caller passed. A body that's a stream can be sent only once, and a caller that sends `Last-Event-ID` resumes
 * by itself and counts from there: both pass unchanged.
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

/** `Request` resolves relative URLs against the page, if there is one. */
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
  // Some runtimes lack these fields, and refuse an `init` that has them.
  for (const name of INHERITED) if (request?.[name] !== undefined) init[name] = request[name];
  return init;
}

export interface RunRequest {
  readonly url: string;
  readonly init: RequestInit;
}

/** The requests to replicas on behalf of one caller, all with the caller's own credential. */
export class RunRequests {
  readonly #request: WireRequest;
  /** The run that the caller named; empty if it named none. */
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

  /** Asks for the rest of a run after the received events. `isWhole`: includes the caller's own request. */
  rest(root: string, run: string, { cursor, tail, id }: ReceivedEvents, isWhole: boolean): RunRequest {
    const { wire, body: asked } = this.#request;
    const headers = this.#headersWithout('content-length');
    headers.set('content-type', 'application/json');
    // Its epoch distinguishes events that were lost with a log from those that replaced them.
    if (id !== '') headers.set('last-event-id', id);
    const request = isWhole ? { path: `/v1${wire.path}`, body: asked } : undefined;
    const body = JSON.stringify({ cursor, tail, request });
    return this.#to(`${urlOf(root, run)}/resume`, { method: 'POST', headers, body });
  }

  /** `run` is empty while the run's id is unknown: the key identifies it then. */
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
