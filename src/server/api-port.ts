import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Limits } from '../config/configuration.ts';
import { type ApiError, apiError } from '../lib/errors.ts';

/** Upper limit for the interval at which connections are checked for slow headers and requests. */
const CONNECTION_CHECK_MS_MAX = 1000;

/** The API port. It outlives configurations. */
export class ApiPort {
  readonly #handle: RequestListener;
  readonly #header_bytes: number;
  /** One server, plus one for each further address of the host name. */
  readonly #servers: Server[] = [];
  #limits: Limits;

  constructor(limits: Limits, handle: RequestListener) {
    this.#handle = handle;
    this.#limits = limits;
    this.#header_bytes = limits.header_bytes;
  }

  /** Listens on all addresses of `localhost` if it has several. Rejects if the first one can't be opened. */
  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<AddressInfo> {
    const [first = host, ...others] = await addressesOf(host);
    const address = await this.#open(first, port);
    await Promise.allSettled(others.map((other) => this.#open(other, address.port)));
    return address;
  }

  /** Applies another configuration's limits to all connections, except for the header size. */
  limit(limits: Limits): void {
    this.#limits = limits;
    for (const server of this.#servers) this.#apply(server);
  }

  /** Accepts no more connections and closes idle ones. */
  stopListening(): void {
    for (const server of this.#servers) {
      server.close();
      server.closeIdleConnections();
    }
  }

  closeAllConnections(): void {
    for (const server of this.#servers) server.closeAllConnections();
  }

  async close(): Promise<void> {
    const closed = this.#servers.map((server) => new Promise((resolve) => server.close(resolve)));
    this.closeAllConnections();
    await Promise.all(closed);
  }

  async #open(host: string, port: number): Promise<AddressInfo> {
    const server = createServer(
      {
        connectionsCheckingInterval: Math.min(CONNECTION_CHECK_MS_MAX, this.#limits.header_ms),
        maxHeaderSize: this.#header_bytes,
      },
      this.#handle,
    );
    this.#apply(server);
    server.on('clientError', (error, socket) =>
      answerUnparsable(error, socket as Socket, this.#header_bytes),
    );
    server.listen({ host, port });
    await once(server, 'listening');
    this.#servers.push(server);
    return server.address() as AddressInfo;
  }

  #apply(server: Server): void {
    const { connections, header_ms, request_ms, keep_alive_ms } = this.#limits;
    server.maxConnections = connections;
    server.headersTimeout = Math.min(header_ms, request_ms);
    server.requestTimeout = request_ms;
    server.keepAliveTimeout = keep_alive_ms;
  }
}

/** A name that can't be resolved is left to `listen`, whose error says what is wrong. */
async function addressesOf(host: string): Promise<readonly string[]> {
  if (host !== 'localhost') return [host];
  const found = await lookup(host, { all: true }).catch(() => []);
  return [...new Set(found.map(({ address }) => address))];
}

/**
 * Answers data that never became a request. After an earlier response on the connection, closing it silently is safer.
 */
function answerUnparsable(error: NodeJS.ErrnoException, socket: Socket, limit_bytes: number): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const { status, body } = unparsable(error.code, limit_bytes);
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

function unparsable(code: string | undefined, limit_bytes: number): ApiError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return apiError('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return apiError('headers_too_large', { limit_bytes });
  return apiError('bad_request');
}
