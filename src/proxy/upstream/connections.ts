import { buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool, ProxyAgent } from 'undici';
import type { ConnectionSettings } from '../../config/load.ts';
import { isLoopback } from '../../lib/host-name.ts';

interface ConnectionLimits {
  /** Of a connection, and of the answer of a proxy. */
  readonly connect_ms: number;
  /** A connection that is about to be made is still wanted. */
  readonly isWanted: () => boolean;
}

/** A proxy has not made the connection that it was asked for. Its message has the status that it answered. */
class ProxyRefusal extends Error {
  override readonly name = 'ProxyRefusal';
  readonly code = 'PROXY_REFUSED';
}

/** What the environment says of proxies, where it does. Which of them is asked, and for what, is for undici to say. */
export const environmentProxy = (): string | undefined =>
  ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']
    .map((name) => process.env[name])
    .find((proxy) => proxy !== undefined && proxy !== '');

/** As many kept-alive connections as there are concurrent requests, with HTTP/1.1 and HTTP/2 by ALPN, and no other clocks. */
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
 * undici cannot take back a request that waits for a connection. Were connections tried for requests that have since been
 * given up, new requests would wait behind each of them in turn.
 */
const whileWanted =
  (connect: buildConnector.connector, isWanted: () => boolean): buildConnector.connector =>
  (options, callback) => {
    if (!isWanted()) return queueMicrotask(() => callback(new Error('not needed'), null));
    connect(options, (...made) => {
      const [error] = made;
      // undici has the same code for what it gives up itself.
      if (error && (error as NodeJS.ErrnoException).code === 'UND_ERR_ABORTED')
        callback(new ProxyRefusal(error.message), null);
      else callback(...made);
    });
  };
