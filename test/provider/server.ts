import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type Certificate, certificate } from './certificate.ts';
import { type AnyRequest, type AnyResponse, Channel, type Connection } from './channel.ts';

/** `h2c`: HTTP/2 with prior knowledge. `h2`: TLS with ALPN, which lets a client choose HTTP/1.1 as well. */
export const PROTOCOLS = ['http1', 'https1', 'h2c', 'h2'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export type Handle = (request: AnyRequest, response: AnyResponse, channel: Channel) => void;

export interface Listening {
  readonly port: number;
  readonly origin: string;
  /** The certificate of the authority to trust, in PEM, if the protocol uses TLS. */
  readonly ca: string | undefined;
  /** Breaks every connection and stops listening. */
  close(): Promise<void>;
}

export async function listen(protocol: Protocol, port: number, handle: Handle): Promise<Listening> {
  const tls = protocol === 'https1' || protocol === 'h2' ? await certificate() : undefined;
  /** By the client's port, which is all that HTTP/2 and TLS reveal of the socket below them. */
  const sockets = new Map<number, Connection>();
  const server = create(protocol, tls, (request, response) => {
    const connection = sockets.get(request.socket.remotePort ?? 0);
    if (connection) handle(request, response, new Channel(response, connection));
  });
  server.on('connection', (socket: Socket) => {
    const client = socket.remotePort ?? 0;
    sockets.set(client, { tcp: socket });
    socket.once('close', () => {
      // By now, the client's system may have reused the port for another connection.
      if (sockets.get(client)?.tcp === socket) sockets.delete(client);
    });
    // Departing clients and our own cuts surface as errors here; the layers above have already ended their responses.
    socket.on('error', () => {});
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    const connection = sockets.get(socket.remotePort ?? 0);
    if (connection) connection.tls = socket;
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${address.port}`,
    ca: tls?.cert,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const { tcp } of sockets.values()) tcp.destroy();
      await closed;
    },
  };
}

type Listener = (request: AnyRequest, response: AnyResponse) => void;

function create(protocol: Protocol, tls: Certificate | undefined, listener: Listener): Server {
  switch (protocol) {
    case 'http1':
      return http.createServer(listener);
    case 'https1':
      return https.createServer({ ...tls }, listener);
    case 'h2c':
      return http2.createServer(listener);
    case 'h2':
      return http2.createSecureServer({ ...tls, allowHTTP1: true }, listener);
  }
}
