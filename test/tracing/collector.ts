import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { quietPort } from '../rehearsal/quiet-port.ts';
import { type ExportedTraces, type ReceivedSpan, spansIn } from './otlp.ts';

/** Allows for a busy machine. */
const ARRIVAL_MS = 30_000;

/** A real OpenTelemetry Collector, which writes the traces that it understood to a file. */
export class Collector {
  /** The base URL of its OTLP receiver. */
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #directory: string;

  private constructor(url: string, child: ChildProcess, directory: string) {
    this.url = url;
    this.#child = child;
    this.#directory = directory;
  }

  static async start(path: string): Promise<Collector> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-otelcol-'));
    const endpoint = `127.0.0.1:${await quietPort()}`;
    const configuration = join(directory, 'otelcol.yaml');
    // Every JSON document is a YAML document.
    writeFileSync(configuration, JSON.stringify(configurationOf(endpoint, join(directory, FILE))));
    const child = spawn(path, ['--config', configuration], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr?.on('data', (bytes: Buffer) => {
        said += bytes.toString();
        if (said.includes('Everything is ready')) resolve();
      });
      child.once('error', reject);
      child.once('exit', () => reject(new Error(said)));
    });
    return new Collector(`http://${endpoint}`, child, directory);
  }

  /** The file with everything received so far. */
  get written(): string {
    const path = join(this.#directory, FILE);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  get spans(): ReceivedSpan[] {
    // The last line may be incomplete.
    const lines = this.written.split('\n').slice(0, -1);
    return lines.flatMap((line) => spansIn(JSON.parse(line) as ExportedTraces));
  }

  /**
   * The trees of a run, one per replica that took part in it: a span with its attempts. Waits until there are `count`
   * of them.
   */
  runs(run: string, count = 1): Promise<RunTree[]> {
    return vi.waitFor(
      () => {
        const trees = treesOf(run, this.spans);
        if (trees.length < count) throw new Error(`${trees.length} of ${count} spans of ${run} have come`);
        return trees;
      },
      { timeout: ARRIVAL_MS, interval: 50 },
    );
  }

  async close(): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exit;
    rmSync(this.#directory, { recursive: true });
  }
}

export interface RunTree {
  readonly span: ReceivedSpan;
  /** In order of time. */
  readonly attempts: readonly ReceivedSpan[];
}

const FILE = 'traces.jsonl';

const configurationOf = (endpoint: string, path: string) => ({
  receivers: { otlp: { protocols: { http: { endpoint } } } },
  exporters: { file: { path, flush_interval: '50ms' } },
  service: {
    telemetry: { metrics: { level: 'none' } },
    pipelines: { traces: { receivers: ['otlp'], exporters: ['file'] } },
  },
});

function treesOf(run: string, spans: readonly ReceivedSpan[]): RunTree[] {
  const of = spans.filter(({ attributes }) => attributes['holdfast.run.id'] === run);
  const inOrder = of.toSorted((one, other) => Number(one.began_ns - other.began_ns));
  return inOrder
    .filter(({ kind }) => kind === 'server')
    .map((span) => ({
      span,
      attempts: inOrder.filter(({ parentSpanId, kind }) => kind === 'client' && parentSpanId === span.spanId),
    }));
}
