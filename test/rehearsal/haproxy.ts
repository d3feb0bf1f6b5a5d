import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Listen } from '../e2e/deployment.ts';
import { quietPort } from './quiet-port.ts';

const TEMPLATE = fileURLToPath(new URL('haproxy.cfg', import.meta.url));
const POLL_MS = 50;
const START_MAX_MS = 20_000;

/** A place for a replica behind the balancer, identified by its name and ports. */
export interface Slot extends Listen {
  readonly name: string;
}

export interface HaproxyOptions {
  readonly binary: string;
  readonly slots: readonly Slot[];
  readonly check_interval_ms: number;
}

/** A row of HAProxy's statistics, by column name. */
export type Statistics = ReadonlyMap<string, string>;

/** HAProxy with the configuration in this directory. Responses name their slot in `x-served-by`. */
export class Haproxy {
  readonly port: number;
  readonly #directory: string;
  readonly #child: ChildProcess;
  #said = '';

  private constructor(port: number, directory: string, binary: string) {
    this.port = port;
    this.#directory = directory;
    this.#child = spawn(binary, ['-db', '-f', join(directory, 'haproxy.cfg')], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (bytes: Buffer) => {
        this.#said += bytes.toString();
      });
  }

  /** Resolves once HAProxy answers; the slots may be empty. */
  static async start({ binary, slots, check_interval_ms }: HaproxyOptions): Promise<Haproxy> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-haproxy-'));
    const port = await quietPort();
    const servers = slots.map(
      (slot) => `  server ${slot.name} 127.0.0.1:${slot.port} port ${slot.admin_port}`,
    );
    const configuration = readFileSync(TEMPLATE, 'utf8')
      .replace('/run/haproxy/admin.sock', join(directory, 'admin.sock'))
      .replace(':8000', `127.0.0.1:${port}`)
      .replace('inter 1s', `inter ${check_interval_ms}ms`)
      .replace(/( {2}server .*\n)+/, `${servers.join('\n')}\n`);
    writeFileSync(join(directory, 'haproxy.cfg'), configuration);
    const haproxy = new Haproxy(port, directory, binary);
    const deadline_ms = performance.now() + START_MAX_MS;
    while (!(await haproxy.statistics().catch(() => undefined))) {
      if (haproxy.#hasExited || performance.now() > deadline_ms) {
        await haproxy.close();
        throw new Error(`haproxy does not start: ${haproxy.#said}`);
      }
      await pause(POLL_MS);
    }
    return haproxy;
  }

  /** The base URL for clients, ending in `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  /** All statistics, by proxy and server: `api/FRONTEND`, `holdfast/BACKEND`, `holdfast/<slot>`. */
  async statistics(): Promise<ReadonlyMap<string, Statistics>> {
    const [header = '', ...lines] = (await this.#ask('show stat')).trim().split('\n');
    const names = header.replace('# ', '').split(',');
    const rows = lines.map(
      (line) => new Map(line.split(',').map((value, index) => [names[index] ?? '', value])),
    );
    return new Map(rows.map((row) => [`${row.get('pxname')}/${row.get('svname')}`, row]));
  }

  /** One value of the statistics. */
  async figure(row: string, column: string): Promise<number> {
    return Number((await this.statistics()).get(row)?.get(column));
  }

  /** Resolves once health checks have found a ready replica in the slot. */
  async untilUp({ name }: Slot): Promise<void> {
    while ((await this.statistics()).get(`holdfast/${name}`)?.get('status') !== 'UP') await pause(POLL_MS);
  }

  /** Resolves once HAProxy knows that the slot is empty. */
  async untilDown({ name }: Slot): Promise<void> {
    while ((await this.statistics()).get(`holdfast/${name}`)?.get('status') !== 'DOWN') await pause(POLL_MS);
  }

  async close(): Promise<void> {
    if (!this.#hasExited) {
      const exited = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await exited;
    }
    rmSync(this.#directory, { recursive: true });
  }

  get #hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async #ask(command: string): Promise<string> {
    const socket = connect(join(this.#directory, 'admin.sock'));
    await once(socket, 'connect');
    socket.write(`${command}\n`);
    return text(socket);
  }
}
