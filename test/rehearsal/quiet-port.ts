import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral range, so that no other process gets the port while its replica is being replaced. */
const FIRST = 15_000;
const COUNT = 15_000;

/** A port that is free, and that the system never assigns by itself. */
export async function quietPort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
