import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';

/** An address in front of a server that records what is sent to clients. */
export class Recorder {
  readonly #server: net.Server;
  readonly #sockets = new Set<Socket>();
  #port = 0;
  #sent = '';

  private constructor() {
    this.#server = net.createServer((client) => {
      const server = net.connect(this.#port, '127.0.0.1');
      for (const [socket, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(socket);
        socket
          .on('error', () => {})
          .once('close', () => {
            this.#sockets.delete(socket);
            other.destroy();
          });
      }
      server.on('data', (bytes) => {
        this.#sent += bytes.toString('latin1');
      });
      client.pipe(server).pipe(client);
    });
  }

  static async open(): Promise<Recorder> {
    const recorder = new Recorder();
    recorder.#server.listen(0, '127.0.0.1');
    await once(recorder.#server, 'listening');
    return recorder;
  }

  /** Sends new connections to `url`. */
  lead(url: string): void {
    this.#port = Number(new URL(url).port);
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Everything sent to clients, one character per byte. */
  get sent(): string {
    return this.#sent;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
