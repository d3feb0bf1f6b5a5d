import { once } from 'node:events';
import { createServer } from 'node:net';

const LOWEST = 20_000;
const COUNT = 10_000;

/**
 * Finds a free port below the ephemeral range, so the system can't give it to another socket while its process is down.
 */
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
