import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Limits } from '../config/configuration.ts';
import { type ApiError, apiError } from '../lib/errors.ts';

/** How often connections are looked over for headers and requests that take too long. */
const CONNECTION_CHECK_MS_MAX = 1000;

/** The port of the API. It outlives configurations. */
export class ApiPort {
  readonly #handle: RequestListener;
  readonly #header_bytes: number;
  /** One, and one more for each further address that a name stands for. */
  readonly #servers: Server[] = [];
  #limits: Limits;

  constructor(limits: Limits, handle: RequestListener) {
    this.#handle = handle;
    this.#limits = limits;
    this.#header_bytes = limits.header_bytes;
  }

  /** Where `localhost` has several addresses, it listens on all of them. Rejects where the first one cannot be opened. */
  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<AddressInfo> {
    const [first = host, ...others] = await addressesOf(host);
    const address = await this.#open(first, port);
    await Promise.allSettled(others.map((other) => this.#open(other, address.port)));
    return address;
  }

  /** Takes the limits of another configuration, for all connections; that of headers stays. */
  limit(limits: Limits): void {
    this.#limits = limits;
    for (const server of this.#servers) this.#apply(server);
  }

  /** Accepts no more connections, and closes those that carry no request. */
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

/** A name that cannot be resolved is left to the attempt to listen, which says what is wrong. */
async function addressesOf(host: string): Promise<readonly string[]> {
  if (host !== 'localhost') return [host];
  const found = await lookup(host, { all: true }).catch(() => []);
  return [...new Set(found.map(({ address }) => address))];
}

/** Answers what never became a request; on a connection that carried a response before, silence is safer. */
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
