import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { Devtools } from './devtools.ts';

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

/** A page in a headless browser of its own. */
export interface Page {
  /** Rejects if the browser ends by itself, or cannot open the page. */
  readonly ended: Promise<never>;
  /** What its console has shown in red so far. */
  readonly errors: readonly string[];
  close(): Promise<void>;
}

export function openPage(command: string, url: string): Page {
  const profile = mkdtempSync(join(tmpdir(), 'holdfast-chromium-'));
  const sandbox = isRoot ? ['--no-sandbox'] : [];
  const quiet = [
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking',
  ];
  const watched = ['--remote-debugging-pipe', `--user-data-dir=${profile}`];
  const child = spawn(command, ['--headless', ...sandbox, ...quiet, ...watched], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  const [, , , to, from] = child.stdio;
  const devtools = new Devtools(to as Writable, from as Readable);
  let said = '';
  child.stderr?.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-4096);
  });
  const exited = once(child, 'close');
  let isClosing = false;
  const never = new Promise<never>(() => {});
  const ended = exited.then(() => {
    if (isClosing) return never;
    throw new Error(`chromium has ended: ${said}`);
  });
  const opened = devtools.open(url).then(() => never);
  return {
    ended: Promise.race([ended, opened]),
    errors: devtools.errors,
    async close() {
      isClosing = true;
      child.kill('SIGTERM');
      await exited;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}
