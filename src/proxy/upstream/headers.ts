import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { CREDENTIAL_HEADERS, isKeyed, type UpstreamConfiguration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';

/** What a wire asks of the headers of its requests; see `Wire`. */
interface WireHeaders {
  readonly keyHeader?: 'x-api-key';
  readonly headers?: Readonly<Record<string, string>>;
}

/** A header record that undici and `node:http` both take; names in lower case. */
export type Headers = Record<string, string | string[]>;

/** RFC 9110 §7.6.1: these speak of one connection. Those that `connection` names are added per message. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/**
 * What else stays here on the way up. `host` and `content-length` are the transport's; `expect` was answered by
 * this server; cookies belong to this host, and a page's session is not the provider's business; forwarding
 * headers are neither trusted nor added, because providers must not learn who our clients are. Of `via` only our
 * own entries are passed on, by which a request in a loop is recognised.
 */
const NOT_FORWARDED = ['host', 'content-length', 'expect', 'cookie', 'forwarded', 'via', 'x-real-ip'];
const NOT_FORWARDED_PREFIXES = ['holdfast-', 'x-forwarded-'];

/** `alt-svc` would send the client to another port of this host, where nothing of the provider listens. */
const NOT_RETURNED = ['alt-svc'];
/** Which web pages may read an answer is ours to say. */
const NOT_RETURNED_PREFIXES = ['access-control-'];
/** What the account behind a key of ours gets is not the client's: a session at the provider, runs at a Holdfast there. */
const OF_ACCOUNT = ['set-cookie', 'holdfast-'];

const OF_CONNECTION: ReadonlySet<string> = new Set(HOP_BY_HOP);
const REQUEST_STRIPPED: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...NOT_FORWARDED]);
const RESPONSE_STRIPPED: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...NOT_RETURNED]);

/** All headers but those that speak of one connection. */
export const endToEndHeaders = (headers: Readonly<Record<string, string | string[] | undefined>>): Headers =>
  without(headers, OF_CONNECTION, []);

/** Headers of a client's request as they go upstream. `wire`: the one it is on, if it is on any. */
export function requestHeaders(
  headers: IncomingHttpHeaders,
  upstream: UpstreamConfiguration,
  wire?: Pick<WireHeaders, 'keyHeader'>,
): Headers {
  const forwarded = without(headers, REQUEST_STRIPPED, NOT_FORWARDED_PREFIXES);
  const via = holdfastsIn(headers.via);
  if (via.length > 0) forwarded.via = via.join(', ');
  if (isKeyed(upstream)) for (const name of CREDENTIAL_HEADERS) delete forwarded[name];
  const { api_key } = upstream;
  if (api_key !== undefined && wire?.keyHeader) forwarded[wire.keyHeader] = api_key;
  else if (api_key !== undefined) forwarded.authorization = `Bearer ${api_key}`;
  for (const [name, value] of Object.entries(upstream.headers ?? {})) forwarded[name.toLowerCase()] = value;
  return forwarded;
}

/** What a client says to us about its run. A provider could take the rest of an answer for the whole of it. */
const OF_RUN = ['idempotency-key', 'last-event-id'];

/** Same, for a stream we read: compressed events could not be separated as they come. */
export function streamRequestHeaders(
  headers: IncomingHttpHeaders,
  upstream: UpstreamConfiguration,
  wire?: Pick<WireHeaders, 'keyHeader'>,
): Headers {
  const forwarded = requestHeaders(headers, upstream, wire);
  for (const name of OF_RUN) delete forwarded[name];
  return { ...forwarded, 'accept-encoding': 'identity' };
}

/** Same, where the client only came back to its run: it brings the credential, and the body is the stored one. */
export function revivedRequestHeaders(
  headers: IncomingHttpHeaders,
  upstream: UpstreamConfiguration,
  wire?: WireHeaders,
): Headers {
  const sent = streamRequestHeaders(headers, upstream, wire);
  return { ...wire?.headers, ...sent, 'content-type': 'application/json', accept: '*/*' };
}

/** Headers of a provider's response as they go back to the client. */
export const responseHeaders = (
  headers: Readonly<Record<string, string | string[] | undefined>>,
  upstream: UpstreamConfiguration,
): Headers =>
  without(headers, RESPONSE_STRIPPED, [...NOT_RETURNED_PREFIXES, ...(isKeyed(upstream) ? OF_ACCOUNT : [])]);

function without(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  stripped: ReadonlySet<string>,
  prefixes: readonly string[],
): Headers {
  const named = namesIn(headers.connection);
  const kept: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || stripped.has(name) || named.includes(name)) continue;
    if (!prefixes.some((prefix) => name.startsWith(prefix))) kept[name] = value;
  }
  return kept;
}

/** The items of a header that is a list of names, in lower case. */
export const namesIn = (header: string | string[] | undefined): string[] =>
  String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

/** An entry of `Via` that a Holdfast has made. */
const ENTRY = /^1\.1 holdfast-[\w-]{16}$/;
const NAME_CHARACTERS = 16;

/** Entries of a `Via` header that Holdfasts have made: the others do not concern an upstream. */
const holdfastsIn = (via: string | undefined): readonly string[] =>
  (via ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => ENTRY.test(entry));

/**
 * Refuses requests that have come by this deployment before, and makes the others say so from now on (RFC 9110
 * §7.6.3): two that have each other for an upstream would pass a request on for ever. Replicas that share a secret are
 * one deployment; its name upstream does not reveal what it is derived from. Throws `loop_detected`.
 */
export function loopGuard(secret: string): (headers: IncomingHttpHeaders) => void {
  const name = createHmac('sha256', secret).update('via').digest('base64url').slice(0, NAME_CHARACTERS);
  const entry = `1.1 holdfast-${name}`;
  return (headers) => {
    const before = holdfastsIn(headers.via);
    if (before.includes(entry)) throw apiError('loop_detected');
    headers.via = [...before, entry].join(', ');
  };
}
