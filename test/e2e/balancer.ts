import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';

/**
 * A single address for several replicas, as behind a load balancer. Each connection goes to the first replica that
 * accepts it, and breaks when that replica breaks.
 */
export class Balancer {
  readonly #server: net.Server;
  readonly #sockets = new Set<Socket>();

  private constructor(ports: readonly number[]) {
    this.#server = net.createServer((client) => void this.#join(client, ports));
  }

  /** `urls` lists the replicas in order of preference. */
  static async open(urls: readonly string[]): Promise<Balancer> {
    const balancer = new Balancer(urls.map((url) => Number(new URL(url).port)));
    balancer.#server.listen(0, '127.0.0.1');
    await once(balancer.#server, 'listening');
    return balancer;
  }

  /** The base URL for clients, ending in `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #join(client: Socket, ports: readonly number[]): Promise<void> {
    this.#keep(client);
    for (const port of ports) {
      const replica = net.connect(port, '127.0.0.1');
      this.#keep(replica);
      if (!(await isTaken(replica))) continue;
      replica.once('close', () => client.destroy());
      client.once('close', () => replica.destroy());
      client.pipe(replica).pipe(client);
      return;
    }
    client.destroy();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket));
  }
}

const isTaken = (socket: Socket): Promise<boolean> =>
  new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('close', () => resolve(false));
  });
