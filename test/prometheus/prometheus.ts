import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../redis/free-port.ts';

const PORTS_TRIED = 5;

export interface PrometheusOptions {
  readonly binary: string;
  /** Addresses of admin ports, `host:port`, all scraped as the job `holdfast`. */
  readonly targets: readonly string[];
  readonly rules: string;
}

/** One series of a query result: its labels and its latest value. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface EvaluatedRule {
  readonly name: string;
  readonly type: 'alerting' | 'recording';
  readonly health: 'ok' | 'err' | 'unknown';
  readonly lastError?: string;
  readonly lastEvaluation: string;
  readonly state?: 'inactive' | 'pending' | 'firing';
}

interface Answer<Data> {
  readonly status: 'success' | 'error';
  readonly data: Data;
  readonly error?: string;
}

interface Vector {
  readonly result: readonly {
    readonly metric: Readonly<Record<string, string>>;
    readonly value: readonly [number, string];
  }[];
}

/** A real Prometheus that scrapes once a second, with its own process and directory. */
export class Prometheus {
  readonly #port: number;
  readonly #directory = mkdtempSync(join(tmpdir(), 'holdfast-prometheus-'));
  readonly #child: ChildProcess;
  readonly #output: string[] = [];
  readonly #ready = Promise.withResolvers<void>();

  private constructor(port: number, { binary, targets, rules }: PrometheusOptions) {
    this.#port = port;
    const configuration = join(this.#directory, 'prometheus.yml');
    // Every JSON document is a YAML document.
    writeFileSync(
      configuration,
      JSON.stringify({
        global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
        rule_files: [rules],
        scrape_configs: [
          { job_name: 'holdfast', static_configs: [{ targets, labels: { namespace: 'test' } }] },
        ],
      }),
    );
    this.#child = spawn(
      binary,
      [
        `--config.file=${configuration}`,
        `--storage.tsdb.path=${join(this.#directory, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--enable-feature=exemplar-storage',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    if (!this.#child.stderr) throw new Error('the process has no standard error');
    createInterface(this.#child.stderr).on('line', (line) => {
      this.#output.push(line);
      if (line.includes('Server is ready to receive web requests')) this.#ready.resolve();
    });
    this.#child.on('error', this.#ready.reject);
    this.#child.on('close', () =>
      this.#ready.reject(new Error(`prometheus has ended:\n${this.#output.join('\n')}`)),
    );
  }

  static async start(options: PrometheusOptions): Promise<Prometheus> {
    for (let attempt = 1; ; attempt++) {
      const prometheus = new Prometheus(await freePort(), options);
      try {
        await prometheus.#ready.promise;
        return prometheus;
      } catch (error) {
        await prometheus.stop();
        // Another process may have taken the port in the meantime.
        if (attempt === PORTS_TRIED || !/in use/i.test((error as Error).message)) throw error;
      }
    }
  }

  /** The current samples. Rejects if the expression can't be evaluated. */
  async query(expression: string): Promise<readonly Sample[]> {
    const { result } = await this.#get<Vector>(`query?query=${encodeURIComponent(expression)}`);
    return result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
  }

  async rules(): Promise<readonly EvaluatedRule[]> {
    interface Groups {
      readonly groups: readonly { readonly rules: readonly EvaluatedRule[] }[];
    }
    const { groups } = await this.#get<Groups>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  /** The labels of the exemplars of the last minutes. */
  async exemplars(expression: string): Promise<readonly Readonly<Record<string, string>>[]> {
    interface Series {
      readonly exemplars: readonly { readonly labels: Readonly<Record<string, string>> }[];
    }
    const end_s = Date.now() / 1000;
    const found = await this.#get<readonly Series[]>(
      `query_exemplars?query=${encodeURIComponent(expression)}&start=${end_s - 600}&end=${end_s}`,
    );
    return found.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels));
  }

  /** The errors of the last scrape, by target address. */
  async scrapeErrors(): Promise<ReadonlyMap<string, string>> {
    interface Targets {
      readonly activeTargets: readonly { readonly scrapeUrl: string; readonly lastError: string }[];
    }
    const { activeTargets } = await this.#get<Targets>('targets');
    return new Map(activeTargets.map(({ scrapeUrl, lastError }) => [scrapeUrl, lastError]));
  }

  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null) {
      const closed = once(this.#child, 'close');
      this.#child.kill('SIGKILL');
      await closed;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #get<Data>(path: string): Promise<Data> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/api/v1/${path}`);
    const { status, data, error } = (await response.json()) as Answer<Data>;
    if (status !== 'success') throw new Error(`${path}: ${error}`);
    return data;
  }
}
