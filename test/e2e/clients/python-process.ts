import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Answer } from './chat-client.ts';

const PACKAGES = fileURLToPath(new URL('../../../clients/python/src', import.meta.url));

interface Result {
  readonly id: number;
  readonly answer?: Answer;
  readonly error?: { readonly name: string; readonly message: string };
}

export class PythonError extends Error {
  constructor({ name, message }: { readonly name: string; readonly message: string }) {
    super(message);
    this.name = name;
  }
}

/** A script from `test/e2e/python` in its own process, which makes requests on demand. */
export class PythonProcess {
  readonly #child: ChildProcess;
  readonly #complaints: Promise<string>;
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>();
  #id = 0;

  constructor(interpreter: string, script: string, ...words: readonly string[]) {
    const path = fileURLToPath(new URL(`../python/${script}`, import.meta.url));
    const env = { ...process.env, PYTHONPATH: PACKAGES, PYTHONDONTWRITEBYTECODE: '1' };
    const child = spawn(interpreter, [path, ...words], { stdio: 'pipe', env });
    this.#child = child;
    this.#complaints = text(child.stderr);
    createInterface(child.stdout).on('line', (line) => this.#settle(JSON.parse(line) as Result));
    child.once('exit', () => this.#fail());
  }

  /** Rejects with a {@link PythonError} for any error that the client raises. */
  ask(manner: string, request: object): Promise<Answer> {
    const id = this.#id++;
    const waiting = Promise.withResolvers<Answer>();
    this.#waiting.set(id, waiting);
    this.#child.stdin?.write(`${JSON.stringify({ id, manner, request })}\n`);
    return waiting.promise;
  }

  /** Rejects if the process printed anything that a caller couldn't catch. */
  async close(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.stdin?.end();
    await exited;
    const complaints = await this.#complaints;
    if (complaints !== '') throw new Error(complaints);
  }

  #settle({ id, answer, error }: Result): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (answer) waiting?.resolve(answer);
    else waiting?.reject(new PythonError(error ?? { name: 'Error', message: 'no answer' }));
  }

  async #fail(): Promise<void> {
    const complaints = await this.#complaints;
    for (const { reject } of this.#waiting.values()) reject(new Error(`Python ended: ${complaints}`));
  }
}
