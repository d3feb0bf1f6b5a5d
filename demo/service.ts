import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** The longest wait for a process to print an expected line. */
const PATIENCE_MS = 30_000;
const STOP_MAX_MS = 5_000;
/** The last characters of standard error to keep. */
const COMPLAINTS_MAX = 4_000;

/** A process of the demo that writes JSON lines to standard output. */
export class Service {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #listeners = new Set<(line: Record<string, unknown>) => void>();
  #complaints = '';

  /** Runs a file with this Node. The process inherits only PATH from the environment. */
  constructor(name: string, words: readonly string[]) {
    this.#name = name;
    this.#child = spawn(process.execPath, words, {
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#exited = once(this.#child, 'exit');
    // Leaves no child process behind, however this process ends.
    process.once('exit', () => this.#child.kill());
    // Reported by `said` or by the caller.
    this.#exited.catch(() => {});
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints = (this.#complaints + text).slice(-COMPLAINTS_MAX);
    });
    if (this.#child.stdout) {
      createInterface(this.#child.stdout).on('line', (text) => this.#hear(text));
    }
  }

  /** Calls `listener` for every line. Returns a function that removes it. */
  listen(listener: (line: Record<string, unknown>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with the next line that `matches`. Rejects if the process exits first or the wait takes too long. */
  async said(matches: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    const found = Promise.withResolvers<Record<string, unknown>>();
    const stop = this.listen((line) => matches(line) && found.resolve(line));
    const overdue = setTimeout(
      () => found.reject(this.#error(`kept silent for ${PATIENCE_MS} ms`)),
      PATIENCE_MS,
    );
    this.#exited.then(
      () => found.reject(this.#error('exited')),
      (error: Error) => found.reject(this.#error(error.message)),
    );
    try {
      return await found.promise;
    } finally {
      stop();
      clearTimeout(overdue);
    }
  }

  /** Kills the process without warning, like a lost machine. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited.catch(() => {});
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGTERM');
    const overdue = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MAX_MS);
    await this.#exited.catch(() => {});
    clearTimeout(overdue);
  }

  #hear(text: string): void {
    let line: Record<string, unknown>;
    try {
      line = JSON.parse(text);
    } catch {
      this.#complaints += `${text}\n`;
      return;
    }
    for (const listener of this.#listeners) listener(line);
  }

  #error(what: string): Error {
    return new Error(`the ${this.#name} process ${what}\n${this.#complaints}`.trimEnd());
  }
}
