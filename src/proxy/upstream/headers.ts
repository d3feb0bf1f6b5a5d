import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { CREDENTIAL_HEADERS, isKeyed, type UpstreamConfiguration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';

/** A wire's requirements for request headers; see `Wire`. */
interface WireHeaders {
  readonly keyHeader?: 'x-api-key';
  readonly headers?: Readonly<Record<string, string>>;
}

/** Headers in the format of both undici and `node:http`, with lower-case names. */
export type Headers = Record<string, string | string[]>;

/** RFC 9110 §7.6.1: headers of a single connection. Names listed in `connection` are added per message. */
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
 * Further request headers that are not forwarded. The transport sets `host` and `content-length`; this server has
 * answered `expect`; cookies belong to this host, and a page's session doesn't concern the provider; forwarding headers
 * are neither trusted nor added, because providers must not learn about our clients. Of `via`, only Holdfast's entries
 * are forwarded, which detect loops.
 */
const NOT_FORWARDED = ['host', 'content-length', 'expect', 'cookie', 'forwarded', 'via', 'x-real-ip'];
const NOT_FORWARDED_PREFIXES = ['holdfast-', 'x-forwarded-'];

/** `alt-svc` would direct the client to a port of this host where the provider doesn't listen. */
const NOT_RETURNED = ['alt-svc'];
/** This server decides which web pages may read an answer. */
const NOT_RETURNED_PREFIXES = ['access-control-'];
/**
 * Headers about the account of an operator key, such as a session at the provider or runs at another Holdfast, don't
 * concern the client.
 */
const OF_ACCOUNT = ['set-cookie', 'holdfast-'];

const OF_CONNECTION: ReadonlySet<string> = new Set(HOP_BY_HOP);
const REQUEST_STRIPPED: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...NOT_FORWARDED]);
const RESPONSE_STRIPPED: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...NOT_RETURNED]);

/** All headers except those of a single connection. */
export const endToEndHeaders = (headers: Readonly<Record<string, string | string[] | undefined>>): Headers =>
  without(headers, OF_CONNECTION, []);

/** The headers of a client's request for an upstream. `wire`: the request's wire, if any. */
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

/** Headers for Holdfast about a run. With them, a provider could mistake a continuation for the whole answer. */
const OF_RUN = ['idempotency-key', 'last-event-id'];

/**
 * Like {@link requestHeaders}, for a stream that Holdfast reads: compression would prevent separating events as they
 * arrive.
 */
export function streamRequestHeaders(
  headers: IncomingHttpHeaders,
  upstream: UpstreamConfiguration,
  wire?: Pick<WireHeaders, 'keyHeader'>,
): Headers {
  const forwarded = requestHeaders(headers, upstream, wire);
  for (const name of OF_RUN) delete forwarded[name];
  return { ...forwarded, 'accept-encoding': 'identity' };
}

/**
 * Like {@link streamRequestHeaders}, for a client that returned to its run: it brings the credential, while the body is
 * the stored one.
 */
export function revivedRequestHeaders(
  headers: IncomingHttpHeaders,
  upstream: UpstreamConfiguration,
  wire?: WireHeaders,
): Headers {
  const sent = streamRequestHeaders(headers, upstream, wire);
  return { ...wire?.headers, ...sent, 'content-type': 'application/json', accept: '*/*' };
}

/** A provider's response headers for the client. */
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

/** The items of a comma-separated header, in lower case. */
export const namesIn = (header: string | string[] | undefined): string[] =>
  String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

/** A `Via` entry added by a Holdfast. */
const ENTRY = /^1\.1 holdfast-[\w-]{16}$/;
const NAME_CHARACTERS = 16;

/** The `Via` entries added by Holdfasts; others don't concern an upstream. */
const holdfastsIn = (via: string | undefined): readonly string[] =>
  (via ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => ENTRY.test(entry));

/**
 * Returns a guard that refuses requests that have already passed this deployment, and marks all others (RFC 9110
 * §7.6.3): two Holdfasts that are each other's upstream would otherwise forward a request forever. Replicas with the
 * same secret are one deployment; its name doesn't reveal the secret. The guard throws `loop_detected`.
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
