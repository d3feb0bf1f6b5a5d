import { once } from 'node:events';
import { createServer } from 'node:net';

const LOWEST = 20_000;
const COUNT = 10_000;

/** A free port that the system gives to no other socket while the process that listens on it is away: it is below those it picks from. */
export async function keptPort(taken: readonly number[]): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * COUNT);
    if (taken.includes(port)) continue;
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}
