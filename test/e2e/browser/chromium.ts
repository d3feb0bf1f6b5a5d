import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { debianProgram } from '../../debian-program.ts';
import { Devtools } from './devtools.ts';

const run = promisify(execFile);
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const isRoot = process.getuid?.() === 0;

/** The command that starts Chromium, or why this machine has none. */
export type ChromiumCommand = { readonly command: string } | { readonly missing: string };

/** If Chromium isn't installed, installs Debian's package where permitted. */
export async function chromiumCommand(): Promise<ChromiumCommand> {
  const present = await find();
  if (present) return { command: present };
  const installed = await debianProgram('chromium');
  return 'path' in installed ? { command: installed.path } : installed;
}

async function find(): Promise<string | undefined> {
  for (const name of NAMES) {
    try {
      return (await run('which', [name])).stdout.trim();
    } catch {
      // Try the next one.
    }
  }
  return undefined;
}

/** A page in its own headless browser. */
export interface Page {
  /** Rejects if the browser exits on its own, or can't open the page. */
  readonly ended: Promise<never>;
  /** The errors on the page's console so far. */
  readonly errors: readonly string[];
  /** Resolves once the browser has requested the page. */
  readonly opened: Promise<void>;
  /** Runs a DevTools protocol command on the page. */
  command(method: string, params?: object): Promise<unknown>;
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
  const opened = devtools.open(url);
  return {
    ended: Promise.race([ended, opened.then(() => never)]),
    errors: devtools.errors,
    opened,
    command: (method, params) => devtools.command(method, params),
    async close() {
      isClosing = true;
      child.kill('SIGTERM');
      await exited;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}
