import type { IncomingHttpHeaders } from 'node:http';
import type { Configuration } from '../config/configuration.ts';
import { remember } from '../lib/bounded-map.ts';
import { apiError } from '../lib/errors.ts';
import { hostnameOf, isLoopback, isTrustedHost } from '../lib/host-name.ts';

/** How many host names are cached. Clients use one or two. */
const HOSTS_MAX = 100;
/** The longest time that Chromium caches a preflight response. */
const PREFLIGHT_MAX_S = 7200;
const METHODS = 'GET, POST, PUT, PATCH, DELETE';

type Headers = Readonly<Record<string, string>>;

/**
 * Decides which web pages may use the API: those of `listen.cors_origins`, and those served from this port's own
 * address through a reverse proxy. Browsers send requests for any page a user has open, and with `api_key` each would
 * spend the operator's key.
 */
export class BrowserAccess {
  readonly #origins: ReadonlySet<string>;
  /** Public host names of the port. */
  readonly #names: readonly string[];
  /** Other machines can't reach the port, so a public host name is one that a page has pointed here. */
  readonly #isLoopback: boolean;
  /** Values of `Host` that were already found to be trusted. */
  readonly #trusted = new Map<string, true>();

  constructor({ host, cors_origins }: Configuration['listen']) {
    this.#origins = new Set(cors_origins);
    this.#names = cors_origins.map((origin) => new URL(origin).hostname);
    this.#isLoopback = isLoopback(hostnameOf(host));
  }

  /**
   * Headers that let the page read the response; undefined if it needs none or no page is involved. Throws
   * `host_not_allowed` and `origin_not_allowed`.
   */
  admit({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): Headers | undefined {
    if (this.#isLoopback && !this.#isTrusted(host))
      throw apiError('host_not_allowed', { host: host ?? '', remedy: 'its origin to listen.cors_origins' });
    if (origin === undefined) {
      // Requests for images, scripts and links have no `Origin` header.
      if (site === 'cross-site' || site === 'same-site')
        throw apiError('origin_not_allowed', { origin: 'another origin' });
      return undefined;
    }
    if (this.#origins.has(origin))
      return { 'access-control-allow-origin': origin, 'access-control-expose-headers': '*', vary: 'origin' };
    const isOwn = URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
    if (isOwn && this.#isTrusted(host)) return undefined;
    throw apiError('origin_not_allowed', { origin });
  }

  /** What an admitted page may request: everything that any client may. */
  preflight(headers: IncomingHttpHeaders): Headers {
    if (headers['access-control-request-method'] === undefined) return { allow: METHODS };
    const asked = headers['access-control-request-headers'];
    const isPrivate = headers['access-control-request-private-network'] === 'true';
    return {
      'access-control-allow-methods': METHODS,
      ...(asked !== undefined && { 'access-control-allow-headers': String(asked) }),
      ...(isPrivate && { 'access-control-allow-private-network': 'true' }),
      'access-control-max-age': String(PREFLIGHT_MAX_S),
    };
  }

  #isTrusted(host: string | undefined): boolean {
    if (host !== undefined && this.#trusted.has(host)) return true;
    const isTrusted = isTrustedHost(host, this.#names);
    if (isTrusted && host !== undefined) remember(this.#trusted, host, true, HOSTS_MAX);
    return isTrusted;
  }
}
