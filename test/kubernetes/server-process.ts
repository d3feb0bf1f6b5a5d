import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const LINES_KEPT = 40;

/** A server in its own process, and the last lines of its output. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  /** Rejects with the last lines of the output when the process ends; never resolves. */
  readonly ended: Promise<never>;

  constructor(binary: string, words: readonly string[]) {
    const child = spawn(binary, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        this.#lines.push(line);
        if (this.#lines.length > LINES_KEPT) this.#lines.shift();
      });
    }
    const ended = Promise.withResolvers<never>();
    child.on('error', ended.reject);
    child.on('close', () => ended.reject(new Error(`${binary} has ended:\n${this.#lines.join('\n')}`)));
    ended.promise.catch(() => {});
    this.ended = ended.promise;
  }

  /** Resolves once the process has ended. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await closed;
  }
}
