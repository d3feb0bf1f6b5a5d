import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const CLI = fileURLToPath(new URL('../src/cli.ts', import.meta.url));

/** A directory that is removed when the test ends. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * Starts the command in a process that is killed when the test ends. It inherits nothing of the environment but the
 * path and the compile cache.
 */
export function startCli(words: readonly string[], environment: Record<string, string> = {}): ChildProcess {
  const directory = temporaryDirectory();
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [process.env.HOLDFAST_CLI ?? CLI, ...words], {
    cwd: directory,
    env: { PATH, NODE_COMPILE_CACHE, HOME: directory, ...environment },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** Runs the command until it exits. */
export async function runCli(words: readonly string[], environment: Record<string, string> = {}) {
  const child = startCli(words, environment);
  const [stdout, stderr, [status]] = await Promise.all([
    child.stdout ? text(child.stdout) : '',
    child.stderr ? text(child.stderr) : '',
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { stdout, stderr, status };
}

/** Starts `serve` on free ports and waits until it listens. */
export async function startReplicaProcess(
  words: readonly string[],
  environment: Record<string, string> = {},
) {
  const child = startCli(['serve', '--port', '0', '--admin-port', '0', ...words], environment);
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const lines: string[] = [];
  const listening = Promise.withResolvers<{ api: string; admin: string }>();
  if (!child.stdout || !child.stderr) throw new Error('the process has no output');
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line);
    const { msg, api, admin } = JSON.parse(line);
    if (msg === 'listening') listening.resolve({ api, admin });
  });
  const stderr = text(child.stderr);
  void exit.then(async () => listening.reject(new Error(await stderr)));
  return { child, exit, lines, stderr, ...(await listening.promise) };
}
