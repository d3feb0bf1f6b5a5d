import { CHAT_PATH } from './endpoints.ts';

/** A request for a streamed chat completion that can be sent as often as needed. */
export interface ChatRequest {
  readonly url: URL;
  /** The caller's, and those that make the run resumable. */
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
 * The request, if it is one that can be resumed; undefined for every other. Nothing that the caller passed is
 * consumed. A body that is a stream can be sent only once, and a request with `Last-Event-ID` is resumed by its
 * caller, who counts from there: both are left alone.
 */
export async function readChatRequest(
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<ChatRequest | undefined> {
  const request = typeof input === 'object' && 'url' in input ? input : undefined;
  if ((init.method ?? request?.method)?.toUpperCase() !== 'POST') return undefined;
  const url = absolute(request ? request.url : String(input));
  if (!url || !CHAT_PATH.test(url.pathname)) return undefined;
  const headers = new Headers(init.headers ?? request?.headers);
  if (headers.has('last-event-id')) return undefined;
  const { body: given, headers: _headers, method: _method, signal: ownSignal, ...rest } = init;
  const signal = (ownSignal === undefined ? request?.signal : ownSignal) ?? undefined;
  const body = await textOf(given ?? request);
  if (body === undefined || !asksForStream(body)) return undefined;

  headers.set('holdfast-resume', '1');
  if (!headers.has('idempotency-key')) headers.set('idempotency-key', newKey());
  return { url, headers, body, signal, init: { ...inherited(request), ...rest } };
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

function asksForStream(body: string): boolean {
  try {
    return (JSON.parse(body) as { stream?: unknown } | null)?.stream === true;
  } catch {
    return false;
  }
}

function inherited(request: Request | undefined): RequestInit {
  const init: Record<string, unknown> = {};
  // Some runtimes have no such fields, and refuse to be told about them.
  for (const name of INHERITED) if (request?.[name] !== undefined) init[name] = request[name];
  return init;
}

/** 128 random bits. `crypto.randomUUID` is missing from pages that were not served over TLS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `holdfast-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
