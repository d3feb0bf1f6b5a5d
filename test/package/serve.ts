import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

const SERVE = ['serve', '--upstream', 'http://127.0.0.1:9/v1', '--port', '0', '--admin-port', '0'];

/**
 * Runs `serve` of the command `cli` on `node` in `directory` until it says that it listens and its admin port answers,
 * then ends it with SIGTERM. Returns its exit status; throws what it said if it never listened.
 */
export async function serveUntilTold(node: string, cli: string, directory: string): Promise<number | null> {
  const child = spawn(node, [cli, ...SERVE], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: directory },
  });
  try {
    const exit = once(child, 'exit') as Promise<[number | null]>;
    const said = text(child.stderr);
    const listening = Promise.withResolvers<string>();
    createInterface(child.stdout).on('line', (line) => {
      const { msg, admin } = JSON.parse(line);
      if (msg === 'listening') listening.resolve(admin);
    });
    void exit.then(async () => listening.reject(new Error(await said)));
    const { ok } = await fetch(new URL('/livez', await listening.promise));
    if (!ok) throw new Error('the admin port does not answer');
    const page = await fetch(await listening.promise, { headers: { accept: 'text/html' } });
    if (!(await page.text()).startsWith('<!doctype html>')) throw new Error('there is no status page');
    child.kill('SIGTERM');
    const [status] = await exit;
    return status;
  } finally {
    child.kill('SIGKILL');
  }
}
