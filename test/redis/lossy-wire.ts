import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A relay between a client and a server that loses answers, or everything, on demand. */
export class LossyWire {
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  #lost_after: string | undefined;
  #losing = false;
  #isCut = false;

  private constructor(port: number) {
    this.#server = createServer((client) => this.#join(client, connect(port, '127.0.0.1')));
  }

  static async to(port: number): Promise<LossyWire> {
    const wire = new LossyWire(port);
    wire.#server.listen(0, '127.0.0.1');
    await once(wire.#server, 'listening');
    return wire;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Delivers the request that contains `words`, but no answers from then on, until {@link mend}. */
  loseAnswerTo(words: string): void {
    this.#lost_after = words;
  }

  /** Delivers nothing in either direction until {@link mend}. */
  cut(): void {
    this.#isCut = true;
  }

  /** Destroys the connections, which have lost data; new ones work. */
  mend(): void {
    this.#lost_after = undefined;
    this.#losing = false;
    this.#isCut = false;
    for (const socket of this.#connections) socket.destroy();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.mend();
    await once(this.#server, 'close');
  }

  #join(client: Socket, server: Socket): void {
    client.on('data', (chunk: Buffer) => {
      if (this.#lost_after !== undefined && chunk.includes(this.#lost_after)) this.#losing = true;
      if (!this.#isCut) server.write(chunk);
    });
    server.on('data', (chunk: Buffer) => {
      if (!this.#losing && !this.#isCut) client.write(chunk);
    });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#connections.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#connections.delete(socket);
        other.destroy();
      });
    }
  }
}
