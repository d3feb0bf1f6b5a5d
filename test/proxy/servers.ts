import { once } from 'node:events';
import net, { type AddressInfo, type Server, type Socket } from 'node:net';
import tls from 'node:tls';
import type { Certificate } from '../provider/certificate.ts';

export interface Listening {
  readonly origin: string;
  /** Every connection accepted so far. */
  readonly sockets: readonly Socket[];
  close(): void;
}

/** An HTTP/1.1 server that sends what `answer` writes to the socket, once per request. */
export function rawServer(answer: (socket: Socket, request: string) => void): Promise<Listening> {
  return listen(net.createServer(), 'http', (socket) => answerRequests(socket, answer));
}

/** The same over TLS. `below`: the TCP connection. */
export function rawTlsServer(
  certificate: Certificate,
  answer: (socket: Socket, below: Socket) => void,
): Promise<Listening> {
  const below = new Map<number, Socket>();
  const server = tls.createServer({ ...certificate }, (socket) => {
    answerRequests(socket, () => answer(socket, below.get(socket.remotePort ?? 0) as Socket));
  });
  return listen(server, 'https', (socket) => below.set(socket.remotePort ?? 0, socket));
}

/** Listens on a free port of 127.0.0.1. */
export async function listen(
  server: Server,
  scheme: 'http' | 'https',
  onConnection: (socket: Socket) => void = () => {},
): Promise<Listening> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function answerRequests(socket: Socket, answer: (socket: Socket, request: string) => void): void {
  let received = '';
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1');
    const request = /^.*?\r\n\r\n(?:\{\})?/s.exec(received)?.[0];
    const whole = request?.endsWith('{}') || request?.startsWith('GET');
    if (!request || !whole) return;
    received = received.slice(request.length);
    answer(socket, request);
  });
}
