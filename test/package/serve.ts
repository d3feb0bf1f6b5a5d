import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

/** The root URLs of the two ports. */
interface Addresses {
  readonly api: string;
  readonly admin: string;
}

/**
 * Runs `serve` of the command `cli` on `node` in `directory`, with the upstream `upstream`, while `use` runs; then ends
 * it with SIGTERM. Returns its exit status; throws with its output if it never listened.
 */
export async function serveWhile(
  node: string,
  cli: string,
  directory: string,
  upstream: string,
  use: (addresses: Addresses) => Promise<void>,
): Promise<number | null> {
  const words = ['serve', '--upstream', upstream, '--port', '0', '--admin-port', '0'];
  const child = spawn(node, [cli, ...words], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: directory },
  });
  try {
    const exit = once(child, 'exit') as Promise<[number | null]>;
    const said = text(child.stderr);
    const listening = Promise.withResolvers<Addresses>();
    createInterface(child.stdout).on('line', (line) => {
      const { msg, api, admin } = JSON.parse(line);
      if (msg === 'listening') listening.resolve({ api, admin });
    });
    void exit.then(async () => listening.reject(new Error(await said)));
    await use(await listening.promise);
    child.kill('SIGTERM');
    const [status] = await exit;
    return status;
  } finally {
    child.kill('SIGKILL');
  }
}
