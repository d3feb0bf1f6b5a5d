import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Missing } from '../debian-program.ts';
import { MAY_INSTALL, notInstalled } from '../installs.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIRECTORY = join(ROOT, 'examples/use-chat');
const run = promisify(execFile);

/** Installs the example's dependencies and builds it as `npm start` does; or says why this machine can't. */
export async function chatApp(): Promise<{ readonly build: () => Promise<void> } | Missing> {
  const isInstalled = existsSync(join(DIRECTORY, 'node_modules/.package-lock.json'));
  if (!isInstalled && !MAY_INSTALL) return { missing: notInstalled('React') };
  return {
    async build() {
      if (!isInstalled) await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: DIRECTORY });
      await run('npm', ['run', '--silent', 'prestart'], { cwd: DIRECTORY });
    },
  };
}

/** The example's server, with its own chats. */
export class ChatApp {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #chats: string;

  private constructor(url: string, child: ChildProcess, chats: string) {
    this.url = url;
    this.#child = child;
    this.#chats = chats;
  }

  static async start(environment: Readonly<Record<string, string>>, chats = newChats()): Promise<ChatApp> {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', 'server.ts'], {
      cwd: DIRECTORY,
      env: { PATH: process.env.PATH, PORT: '0', CHATS: chats, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
    return new ChatApp(url, child, chats);
  }

  /**
   * Kills the server abruptly, as if its machine were lost. Resolves with its chats, for a server that takes its place.
   */
  async kill(): Promise<string> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
    return this.#chats;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill();
    rmSync(this.#chats, { recursive: true });
  }
}

const newChats = (): string => mkdtempSync(join(tmpdir(), 'holdfast-chats-'));
