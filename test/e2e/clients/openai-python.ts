import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type Answer, API_KEY, type ChatClient, functionTools, type Question } from './chat-client.ts';

const SCRIPT = fileURLToPath(new URL('../python/ask.py', import.meta.url));
const PACKAGES = fileURLToPath(new URL('../../../clients/python/src', import.meta.url));

/** `chunks`: the synchronous client, chunk by chunk. `helper`: the asynchronous one with `.stream()`. */
export type PythonManner = 'chunks' | 'helper';

interface Result {
  readonly id: number;
  readonly answer?: Answer;
  readonly error?: { readonly name: string; readonly message: string };
}

/** Options of the transports of `clients/python`. */
export interface TransportOptions {
  readonly endpoints: readonly string[];
  readonly idle_s?: number;
  readonly max_retries?: number;
}

/** What the Python client raised. */
export class PythonError extends Error {
  constructor({ name, message }: { readonly name: string; readonly message: string }) {
    super(message);
    this.name = name;
  }
}

/** `openai` for Python in a process of its own. */
export class OpenaiPython implements ChatClient {
  readonly name: string;
  readonly #manner: PythonManner;
  readonly #child: ChildProcess;
  readonly #complaints: Promise<string>;
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>();
  #id = 0;

  /** With `options`, its requests go through the transport of `clients/python`. */
  constructor(interpreter: string, manner: PythonManner, baseURL: string, options?: TransportOptions) {
    const words = [SCRIPT, baseURL, API_KEY, ...(options ? [JSON.stringify(options)] : [])];
    const env = { ...process.env, PYTHONPATH: PACKAGES, PYTHONDONTWRITEBYTECODE: '1' };
    const child = spawn(interpreter, words, { stdio: 'pipe', env });
    this.name = `openai for Python, ${manner}`;
    this.#manner = manner;
    this.#child = child;
    this.#complaints = text(child.stderr);
    createInterface(child.stdout).on('line', (line) => this.#settle(JSON.parse(line) as Result));
    child.once('exit', () => this.#fail());
  }

  ask({ model, content, tools, parameters }: Question): Promise<Answer> {
    const id = this.#id++;
    const waiting = Promise.withResolvers<Answer>();
    this.#waiting.set(id, waiting);
    const request = {
      model,
      messages: [{ role: 'user', content }],
      stream_options: { include_usage: true },
      ...(tools.length > 0 && { tools: functionTools(tools) }),
      ...parameters,
    };
    this.#child.stdin?.write(`${JSON.stringify({ id, manner: this.#manner, request })}\n`);
    return waiting.promise;
  }

  /** Rejects if the process complained of anything that nobody could catch. */
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
