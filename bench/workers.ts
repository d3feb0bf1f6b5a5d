// Compares several workers on one machine with a single process: throughput, and the CPU time of the proxy's processes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Load } from './load.ts';
import { children, cpuMilliseconds, nextMessage, startScript } from './processes.ts';
import { startHoldfast } from './proxies/holdfast.ts';

const USAGE = `node bench/workers.ts [options]     (npm run build first)

  --workers N          beside one process (default 2)
  --streams N          at a time, for each process: a busier one writes more events at a time (default 60)
  --rate N             events of each a second; 0: as fast as they go (default 60)
  --rounds N           of both, in turn (default 3)
  --window-seconds N   of each measurement (default 6)
  --help               this text`;

const { values: options } = parseArgs({
  options: {
    workers: { type: 'string', default: '2' },
    streams: { type: 'string', default: '60' },
    rate: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '3' },
    'window-seconds': { type: 'string', default: '6' },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  console.log(USAGE);
  process.exit(0);
}

const RAMP_MS = 500;
/** Long enough for every worker to compile its own hot code. */
const WARM_UP_MS = 5000;
const TAIL_MS = 300;
const WINDOW_MS = Number(options['window-seconds']) * 1000;
const RATE = Number(options.rate);
/** More than any stream delivers in that time. */
const UNPACED_EVENTS = 2_000_000;

interface Measured {
  readonly events_per_s: number;
  /** Summed over all the proxy's processes. */
  readonly cpu_us_per_event: number;
  readonly supervisor_cpu_percent: number;
  /** Per cent of one core. */
  readonly worker_cpu_percent: readonly number[];
}

const directory = mkdtempSync(join(tmpdir(), 'holdfast-workers-'));
const provider = startScript(join(import.meta.dirname, 'provider.ts'));
const { port } = await nextMessage<{ port: number }>(provider);
const load = new Load();
const results = new Map<number, Measured[]>();
try {
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const workers of [1, Number(options.workers)]) {
      const measured = await measure(workers, round);
      results.set(workers, [...(results.get(workers) ?? []), measured]);
      console.log(`${workers} ${JSON.stringify(measured)}`);
    }
  }
} finally {
  await Promise.all([load.stop(), provider.stop()]);
  rmSync(directory, { recursive: true, force: true });
}
const costOf = (workers: number) => median(results.get(workers)?.map((one) => one.cpu_us_per_event) ?? []);
const [one_us, several_us] = [costOf(1), costOf(Number(options.workers))];
console.log(
  `CPU per event: ${one_us.toFixed(1)} µs with one process, ${several_us.toFixed(1)} µs with ${options.workers} workers (${(several_us / one_us).toFixed(2)})`,
);

async function measure(workers: number, round: number): Promise<Measured> {
  process.env.HOLDFAST_WORKERS = String(workers);
  const target = await startHoldfast(`workers-${workers}-${round}`, 'file', port, directory);
  delete process.env.HOLDFAST_WORKERS;
  try {
    const interval_us = RATE === 0 ? 0 : Math.round(1e6 / RATE);
    const events =
      RATE === 0
        ? UNPACED_EVENTS
        : Math.ceil(((RAMP_MS + WARM_UP_MS + WINDOW_MS + TAIL_MS) * 1000) / interval_us);
    await load.mark();
    const connections = workers * Number(options.streams);
    await load.open(target, { connections, ramp_ms: RAMP_MS, interval_us, events });
    await pause(WARM_UP_MS);
    const pid = target.pid ?? 0;
    const parts = workers === 1 ? [pid] : children(pid);
    const cpuOf = () => [cpuMilliseconds(pid), ...parts.map(cpuMilliseconds)];
    await load.mark();
    const before = cpuOf();
    await pause(WINDOW_MS);
    const spent_ms = cpuOf().map((ms, index) => ms - (before[index] ?? 0));
    const window = await load.mark();
    const { broken } = await load.finish();
    if (broken.length > 0) throw new Error(broken[0]);
    const [all_ms = 0, ...each_ms] = spent_ms;
    const percent = (ms: number) => Math.round((ms / WINDOW_MS) * 1000) / 10;
    return {
      events_per_s: Math.round(window.events / (window.duration_us / 1e6)),
      cpu_us_per_event: Math.round((all_ms * 10_000) / window.events) / 10,
      supervisor_cpu_percent: percent(all_ms - each_ms.reduce((sum, ms) => sum + ms, 0)),
      worker_cpu_percent: each_ms.map(percent),
    };
  } finally {
    await target.stop();
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
