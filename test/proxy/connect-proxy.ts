import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** What the proxy was asked for: `host:port` for a tunnel, or the full URL of a request to forward. */
interface Asked {
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly authorization: string | undefined;
}

/** An HTTP proxy on a free port, closed when the test ends. It resolves every name to this machine. */
export class ConnectProxy {
  readonly asked: Asked[] = [];
  /** The status sent instead of a tunnel; `0`: no response at all. */
  refusal: number | undefined;
  readonly #server = http.createServer();
  readonly #sockets = new Set<Socket>();

  static async start(): Promise<ConnectProxy> {
    const proxy = new ConnectProxy();
    const server = proxy.#server;
    server.on('connect', (request, socket: Socket) => proxy.#tunnel(request, socket));
    server.on('request', (request, response) => {
      proxy.#note(request);
      const { port, pathname, search } = new URL(request.url ?? '');
      const { method, headers } = request;
      const sent = http.request({ port, path: pathname + search, method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.on('error', () => response.destroy()).pipe(response);
      });
      request.pipe(sent.on('error', () => response.destroy()));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      proxy.cut();
      server.closeAllConnections();
      server.close();
    });
    return proxy;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  /** Breaks every tunnel. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  #note({ method, url: target, headers }: IncomingMessage): void {
    this.asked.push({ method, target, authorization: headers['proxy-authorization'] });
  }

  #tunnel(request: IncomingMessage, socket: Socket): void {
    this.#note(request);
    this.#keep(socket);
    if (this.refusal === 0) return;
    if (this.refusal !== undefined) return void socket.end(`HTTP/1.1 ${this.refusal} No\r\n\r\n`);
    const other = this.#keep(net.connect(Number(request.url?.split(':').at(-1)), '127.0.0.1'));
    other.once('connect', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(other).pipe(socket);
    });
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    return socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket));
  }
}
