import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { nextMessage } from '../../bench/processes.ts';
import type { DialectName } from '../../src/config/dialect-names.ts';
import type { Call, InstanceCounts, ProbeAnswer, ProbeQuestion } from './probe-messages.ts';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const PROBE = new URL('./probe.ts', import.meta.url).href;
const GREETING = /^holdfast \S+: API on ([^,]+),/;

/** A section of `upstreams` in the configuration. */
export interface UpstreamOptions {
  readonly base_url: string;
  readonly dialect?: DialectName;
}

/** `holdfast serve` as users run it, in a directory of its own, with a probe that counts its calls and objects. */
export class ProbedHoldfast {
  /** The base URL for clients, ending in `/v1`. */
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #directory: string;

  private constructor(child: ChildProcess, directory: string, origin: string) {
    this.#child = child;
    this.#directory = directory;
    this.url = `${origin}/v1`;
  }

  /**
   * Starts it with one upstream. Everything else has its default, including the file store, except for the ports and
   * what only disturbs measurements: the log, and the timers of checkpoints and leases.
   */
  static async start(upstream: UpstreamOptions): Promise<ProbedHoldfast> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-shape-'));
    const configuration = join(directory, 'holdfast.yaml');
    const tree = {
      listen: { port: 0, admin_port: 0 },
      log: { level: 'silent' },
      checkpoint: { interval_ms: 60_000, lease_ms: 600_000 },
      upstreams: { upstream },
    };
    // Every JSON document is a YAML document.
    writeFileSync(configuration, JSON.stringify(tree));
    const child = fork(CLI, ['serve', '--config', configuration], {
      cwd: directory,
      env: { PATH: process.env.PATH, HOME: directory },
      execArgv: ['--disable-warning=ExperimentalWarning', '--import', PROBE],
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    try {
      return new ProbedHoldfast(child, directory, await greeted(child));
    } catch (error) {
      rmSync(directory, { recursive: true });
      throw error;
    }
  }

  /** The calls since the previous question, or since the start. */
  async calls(): Promise<readonly Call[]> {
    return (await this.#ask('calls')).calls ?? [];
  }

  async instances(): Promise<InstanceCounts> {
    return (await this.#ask('instances')).instances ?? {};
  }

  /** Kills the process at once, with its streams. */
  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await exited;
    }
    rmSync(this.#directory, { recursive: true });
  }

  /** Rejects if the process ends instead of answering. */
  #ask(question: ProbeQuestion): Promise<ProbeAnswer> {
    this.#child.send(question);
    return nextMessage<ProbeAnswer>({ process: this.#child });
  }
}

/** Resolves with the origin of the API once the process serves it. Rejects with its output if it doesn't. */
async function greeted(child: ChildProcess): Promise<string> {
  if (!child.stderr) throw new Error('the process has no standard error');
  const said: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    const origin = GREETING.exec(line)?.[1];
    if (origin !== undefined) return origin;
    said.push(line);
  }
  throw new Error(`the measured process did not start: ${said.join('\n')}`);
}
