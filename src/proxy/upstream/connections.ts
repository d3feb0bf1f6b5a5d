import { buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool, ProxyAgent } from 'undici';
import type { ConnectionSettings } from '../../config/load.ts';
import { isLoopback } from '../../lib/host-name.ts';

interface ConnectionLimits {
  /** Time limit for the connection, and for the response of a proxy. */
  readonly connect_ms: number;
  /** Whether a pending connection is still needed. */
  readonly isWanted: () => boolean;
}

/** The proxy did not make the connection. The message contains its status. */
class ProxyRefusal extends Error {
  override readonly name = 'ProxyRefusal';
  readonly code = 'PROXY_REFUSED';
}

/** The environment's proxy setting, if any. undici decides which proxy applies to a request. */
export const environmentProxy = (): string | undefined =>
  ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']
    .map((name) => process.env[name])
    .find((proxy) => proxy !== undefined && proxy !== '');

/** One kept-alive connection per concurrent request, HTTP/1.1 or HTTP/2 by ALPN, without further timeouts. */
export function connectionsTo(
  origin: string,
  { secure, proxy }: ConnectionSettings,
  { connect_ms, isWanted }: ConnectionLimits,
): Dispatcher {
  const endpoint = { allowH2: true, timeout: connect_ms, ...(secure && { secureContext: secure }) };
  const limits = { allowH2: true, bodyTimeout: 0, headersTimeout: 0 };
  const poolOf = (url: string | URL, connect: buildConnector.connector) =>
    new Pool(url, { ...limits, connect: whileWanted(connect, isWanted) });
  const connect = buildConnector(endpoint);
  const isDirect = environmentProxy() === undefined || isLoopback(new URL(origin).hostname);
  if (proxy === undefined && isDirect) return poolOf(origin, connect);
  const proxied = {
    ...limits,
    connect,
    requestTls: endpoint,
    proxyTls: { timeout: connect_ms },
    factory: (url: string | URL, made: object) => poolOf(url, (made as { connect: typeof connect }).connect),
    clientFactory: (url: URL, made: object) => new Pool(url, { ...made, headersTimeout: connect_ms }),
  };
  return proxy === undefined ? new EnvHttpProxyAgent(proxied) : new ProxyAgent({ ...proxied, uri: proxy });
}

/**
 * undici can't withdraw a request that waits for a connection. If it still connected for abandoned requests, new ones
 * would wait for each of those in turn.
 */
const whileWanted =
  (connect: buildConnector.connector, isWanted: () => boolean): buildConnector.connector =>
  (options, callback) => {
    if (!isWanted()) return queueMicrotask(() => callback(new Error('not needed'), null));
    connect(options, (...made) => {
      const [error] = made;
      // undici uses this code for its own aborts, too.
      if (error && (error as NodeJS.ErrnoException).code === 'UND_ERR_ABORTED')
        callback(new ProxyRefusal(error.message), null);
      else callback(...made);
    });
  };
