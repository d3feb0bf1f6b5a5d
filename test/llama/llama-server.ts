import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../redis/free-port.ts';
import { recitingModel } from './reciting-model.ts';

const CONTEXT_TOKENS_PER_SLOT = 4096;
const SLOTS = 2;

/** `llama-server` with the reciting model, in its own process. */
export class LlamaServer {
  readonly port: number;
  readonly #directory: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(port: number, directory: string, child: ChildProcess) {
    this.port = port;
    this.#directory = directory;
    this.#child = child;
    this.#exited = once(child, 'exit');
  }

  static async start(binary: string): Promise<LlamaServer> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-llama-'));
    const model = join(directory, 'recital.gguf');
    writeFileSync(model, recitingModel());
    const port = await freePort();
    const words = {
      '--model': model,
      '--host': '127.0.0.1',
      '--port': String(port),
      '--ctx-size': String(SLOTS * CONTEXT_TOKENS_PER_SLOT),
      '--parallel': String(SLOTS),
      '--threads': '1',
      '--threads-http': '4',
      '--flash-attn': 'off',
      // Half precision would blur the scores of neighbouring tokens.
      '--cache-type-k': 'f32',
      '--cache-type-v': 'f32',
      '--temp': '0',
      '--alias': 'recital',
    };
    const child = spawn(binary, [...Object.entries(words).flat(), '--jinja', '--no-warmup', '--offline'], {
      cwd: directory,
      env: { PATH: process.env.PATH, HOME: directory },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const server = new LlamaServer(port, directory, child);
    try {
      await server.#listening();
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  async close(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
    rmSync(this.#directory, { recursive: true });
  }

  /** Resolves once the model is loaded; rejects with the end of the log if the process ends first. */
  async #listening(): Promise<void> {
    if (!this.#child.stderr) throw new Error('the process has no standard error');
    const last: string[] = [];
    const lines = createInterface(this.#child.stderr);
    await new Promise<void>((resolve, reject) => {
      lines.on('line', (line) => {
        last.push(line);
        if (last.length > 20) last.shift();
        if (line.includes('listening on http')) resolve();
      });
      lines.once('close', () => reject(new Error(`llama-server has ended: ${last.join('\n')}`)));
    });
  }
}
