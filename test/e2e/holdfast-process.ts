import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** What a healthy process prints on standard error, including Node's output with `--inspect`. */
const EXPECTED = /^(holdfast \S+: API on |Debugger |For help, see: )/;
const INSPECTOR = /^Debugger listening on ws:\/\/127\.0\.0\.1:(\d+)/m;

/** One line of the process's log. */
export interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** `holdfast serve` as a separate process with its own directory. */
export class HoldfastProcess {
  /** Contains the configuration file. */
  readonly directory: string;
  readonly #child: ChildProcess;
  readonly #log: LogLine[] = [];
  readonly #lines = new EventEmitter();
  readonly #exited: Promise<unknown>;
  #said = '';

  private constructor(directory: string, child: ChildProcess) {
    this.directory = directory;
    this.#child = child;
    this.#lines.setMaxListeners(0);
    this.#exited = once(child, 'exit').then(() => this.#lines.emit('line'));
    child.stderr?.on('data', (bytes: Buffer) => {
      this.#said += bytes.toString();
    });
    if (!child.stdout) throw new Error('the process has no standard output');
    createInterface(child.stdout).on('line', (line) => {
      this.#log.push(JSON.parse(line) as LogLine);
      this.#lines.emit('line');
    });
  }

  /**
   * `tree` is the configuration as a file would have it; `files` are written next to it. `clock_skew_ms` shifts the
   * time of day of the process; `flags` are Node options.
   */
  static async start(
    tree: Record<string, unknown>,
    files: Readonly<Record<string, string>> = {},
    clock_skew_ms = 0,
    flags: readonly string[] = [],
  ): Promise<HoldfastProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-e2e-'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
    const configuration = join(directory, 'holdfast.yaml');
    // JSON is valid YAML.
    writeFileSync(configuration, JSON.stringify({ listen: { port: 0, admin_port: 0 }, ...tree }));
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const child = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        ...flags,
        ...(clock_skew_ms === 0 ? [] : ['--import', skewedClock(clock_skew_ms)]),
        ...[process.env.HOLDFAST_CLI ?? CLI, 'serve', '--config', configuration],
      ],
      {
        cwd: directory,
        env: { PATH, NODE_COMPILE_CACHE, HOME: directory },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const holdfast = new HoldfastProcess(directory, child);
    await holdfast.logged(({ msg }) => msg === 'listening');
    return holdfast;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The base URL for clients, ending in `/v1`. */
  get url(): string {
    return `${this.#address('api')}/v1`;
  }

  get adminUrl(): string {
    return this.#address('admin');
  }

  /** Requires `--inspect=127.0.0.1:0` among the flags. */
  get inspectorPort(): number {
    const port = INSPECTOR.exec(this.#said)?.[1];
    if (port === undefined) throw new Error('the process was not started with --inspect');
    return Number(port);
  }

  get log(): readonly LogLine[] {
    return this.#log;
  }

  /** Resolves with the first log line that matches, from line `from` on; rejects if the process ends without one. */
  async logged(fits: (line: LogLine) => boolean, from = 0): Promise<LogLine> {
    for (;;) {
      const line = this.#log.slice(from).find(fits);
      if (line) return line;
      if (this.#hasExited) throw new Error(`the process has ended and never logged that; ${this.#said}`);
      await once(this.#lines, 'line');
    }
  }

  /** The value of every series, by name and labels as in `/metrics`. */
  async metrics(): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`${this.adminUrl}/metrics`)).text();
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      samples.map((line) => {
        const end = line.lastIndexOf(' ');
        return [line.slice(0, end), Number(line.slice(end + 1))];
      }),
    );
  }

  /** Resolves once the process has exited. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    this.#child.kill(signal);
    await this.#exited;
  }

  /** Asks the process to stop, and resolves once it has. */
  async stop(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    await this.kill('SIGTERM');
    const { exitCode, signalCode } = this.#child;
    return { code: exitCode, signal: signalCode };
  }

  /** Rejects if the process logged an error or printed a warning. */
  async close(): Promise<void> {
    if (!this.#hasExited) await this.kill('SIGKILL');
    rmSync(this.directory, { recursive: true });
    const errors = this.#log.filter(({ level }) => level === 'error').map((line) => JSON.stringify(line));
    const warnings = this.#said.split('\n').filter((line) => line !== '' && !EXPECTED.test(line));
    if (errors.length + warnings.length > 0) throw new Error([...errors, ...warnings].join('\n'));
  }

  get #hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #address(name: 'api' | 'admin'): string {
    const listening = this.#log.find(({ msg }) => msg === 'listening');
    return String(listening?.[name]);
  }
}

/** A module that shifts the clock of its process. */
const skewedClock = (skew_ms: number): string =>
  `data:text/javascript,${encodeURIComponent(`
    const now = Date.now;
    globalThis.Date = class extends Date {
      constructor(...parts) {
        if (parts.length > 0) super(...parts);
        else super(now() + ${skew_ms});
      }
      static now() {
        return now() + ${skew_ms};
      }
    };
  `)}`;
