import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const isRoot = process.getuid?.() === 0;

/** A command that starts Chromium, or why this machine has none. */
export type ChromiumCommand = { readonly command: string } | { readonly missing: string };

/** Installs Debian's where there is none and this user may. */
export async function chromiumCommand(): Promise<ChromiumCommand> {
  const present = await find();
  if (present) return { command: present };
  if (!isRoot) return { missing: 'there is no chromium on this machine, and only root can install it' };
  try {
    // Another test file may be installing something, too.
    const apt = ['-qq', '-o', 'DPkg::Lock::Timeout=300'];
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', [...apt, 'update'], { env });
    await run('apt-get', [...apt, 'install', '-y', '--no-install-recommends', 'chromium'], { env });
  } catch (error) {
    return { missing: `chromium could not be installed: ${(error as Error).message.split('\n')[0]}` };
  }
  const installed = await find();
  return installed ? { command: installed } : { missing: 'the package installed no chromium' };
}

async function find(): Promise<string | undefined> {
  for (const name of NAMES) {
    try {
      return (await run('which', [name])).stdout.trim();
    } catch {
      // The next one.
    }
  }
  return undefined;
}

/** Opens a page in a headless browser of its own. The promise rejects if the browser ends by itself. */
export function openPage(command: string, url: string): { ended: Promise<never>; close(): Promise<void> } {
  const profile = mkdtempSync(join(tmpdir(), 'holdfast-chromium-'));
  const sandbox = isRoot ? ['--no-sandbox'] : [];
  const quiet = [
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking',
  ];
  const child = spawn(command, ['--headless', ...sandbox, ...quiet, `--user-data-dir=${profile}`, url], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-4096);
  });
  const exited = once(child, 'close');
  let isClosing = false;
  const ended = exited.then(() => {
    if (isClosing) return new Promise<never>(() => {});
    throw new Error(`chromium has ended: ${said}`);
  });
  return {
    ended,
    async close() {
      isClosing = true;
      child.kill('SIGTERM');
      await exited;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}
