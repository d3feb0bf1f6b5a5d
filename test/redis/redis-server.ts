import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';

const READY = /Ready to accept connections|\+monitor master/;
const PORTS_TRIED = 5;

export interface RedisServerOptions {
  readonly binary: string;
  /** Lines of the configuration file, in addition to those that isolate the server. */
  readonly configuration?: readonly string[];
  readonly words?: readonly string[];
}

/** A real server with its own process and directory. Its data survive a restart only if it is so configured. */
export class RedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #command: readonly [binary: string, ...words: string[]];
  #child: ChildProcess | undefined;
  #admin: Redis | undefined;

  private constructor(port: number, { binary, configuration = [], words = [] }: RedisServerOptions) {
    this.port = port;
    this.#directory = mkdtempSync(join(tmpdir(), 'holdfast-redis-'));
    const file = join(this.#directory, 'server.conf');
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${this.#directory}`,
      'databases 1000',
      'save ""',
      'repl-diskless-sync-delay 0',
    ];
    writeFileSync(file, [...lines, ...configuration, ''].join('\n'));
    this.#command = [binary, file, ...words];
  }

  static async start(options: RedisServerOptions): Promise<RedisServer> {
    for (let attempt = 1; ; attempt++) {
      const server = new RedisServer(await freePort(), options);
      try {
        await server.start();
        return server;
      } catch (error) {
        await server.stop();
        // Another process may have taken the port in the meantime.
        if (attempt === PORTS_TRIED || !/in use/i.test((error as Error).message)) throw error;
      }
    }
  }

  /** The URL of database 0. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** A client for direct inspection. */
  get admin(): Redis {
    this.#admin ??= new Redis({ port: this.port, host: '127.0.0.1', lazyConnect: true }).on('error', ignore);
    return this.#admin;
  }

  /** Starts the server on the same port, with the data on its disk. Resolves once it accepts commands. */
  async start(): Promise<void> {
    const [binary, ...words] = this.#command;
    const child = spawn(binary, words, { cwd: this.#directory, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    const output: string[] = [];
    const ready = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        output.push(line);
        if (READY.test(line)) ready.resolve();
      });
    }
    child.on('error', ready.reject);
    child.on('close', () => ready.reject(new Error(`the server has ended:\n${output.join('\n')}`)));
    await ready.promise;
  }

  /** To Redis, the same as a crash of the machine. */
  async kill(): Promise<void> {
    await this.#signal('SIGKILL');
  }

  /** Freezes the process: connections stay open, but get no answers. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** How often the server has executed the command. */
  async calls(command: string): Promise<number> {
    const stats = await this.admin.info('commandstats');
    return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  }

  async stop(): Promise<void> {
    this.#admin?.disconnect();
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
  }
}

const ignore = () => {};
