// Soak test: many streams for many minutes, some of them cut. Every answer must be exact and no resource may grow.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort, nextMessage, type Running, startProgram, startScript, untilHttpOk } from './processes.ts';
import { CLI_PATH } from './proxies/holdfast.ts';
import { HeapInspector, type LiveHeap } from './soak/live-heap.ts';
import { type Sample, takeSample } from './soak/samples.ts';
import { Streams } from './soak/streams.ts';
import { judge } from './soak/verdict.ts';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    streams: { type: 'string', default: '500' },
    'events-per-second': { type: 'string', default: '10' },
    'cut-percent': { type: 'string', default: '5' },
    store: { type: 'string', default: 'file' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

const RAMP_MS = 5000;
const SAMPLE_MS = 1000;
const SAMPLES_PER_LINE = 15;
const SAMPLES_PER_COLLECTION = 30;
/** Share of the time in which heaps and caches reach their working size. */
const WARM_UP_SHARE = 0.2;
const CLOSING_MS = 10_000;

const soak_ms = Number(options.minutes) * 60_000;
const directory = mkdtempSync(join(tmpdir(), 'holdfast-soak-'));
const log_path = join(directory, 'holdfast.log');
const started: Running[] = [];
try {
  await main();
} finally {
  for (const running of started.reverse()) await running.stop();
}
if (process.exitCode === undefined) rmSync(directory, { recursive: true, force: true });
else console.error(`the log and the store are kept in ${directory}`);

async function main(): Promise<void> {
  console.log(
    `seed ${options.seed}, ${options.streams} streams, ${options.minutes} min, store ${options.store}`,
  );
  const { port, admin_port, inspector_port } = await startHoldfast(await startProvider());
  const inspector = await HeapInspector.connect(inspector_port);
  const started_ms = performance.now();
  const before = await takeSample(admin_port, started_ms);
  const streams = new Streams(port);
  const samples: Sample[] = [];
  const heaps: LiveHeap[] = [];
  await rampUp(streams);
  while (performance.now() - started_ms < soak_ms) {
    await pause(SAMPLE_MS);
    const sample = await takeSample(admin_port, started_ms);
    samples.push(sample);
    if (samples.length % SAMPLES_PER_COLLECTION === 0) heaps.push(await inspector.measure(started_ms));
    if (samples.length % SAMPLES_PER_LINE === 0) console.log(line(sample, heaps.at(-1), streams));
  }
  await streams.stop();
  await pause(CLOSING_MS);
  const after = await takeSample(admin_port, started_ms);
  heaps.push(await inspector.measure(started_ms));
  inspector.close();
  console.log(line(after, heaps.at(-1), streams));

  const isWarm = ({ minutes }: { minutes: number }) => minutes * 60_000 > WARM_UP_SHARE * soak_ms;
  const checks = judge({
    samples: samples.filter(isWarm),
    heaps: heaps.slice(0, -1).filter(isWarm),
    before,
    after,
    streams: streams.counts,
    log: readFileSync(log_path, 'utf8'),
  });
  console.log(`\n${checks.map(({ verdict, text }) => `${verdict}  ${text}`).join('\n')}`);
  for (const fault of streams.counts.broken.slice(0, 20)) console.log(`  ${fault}`);
  if (checks.some(({ verdict }) => verdict === 'FAIL')) process.exitCode = 1;
}

async function startProvider(): Promise<number> {
  const words = [options['events-per-second'], String(Number(options['cut-percent']) / 100), options.seed];
  const provider = startScript(join(import.meta.dirname, 'soak/provider.ts'), ...words);
  started.push(provider);
  const { port } = await nextMessage<{ port: number }>(provider);
  return port;
}

async function startHoldfast(upstream_port: number): Promise<{
  port: number;
  admin_port: number;
  inspector_port: number;
}> {
  const [port, admin_port, inspector_port] = [await freePort(), await freePort(), await freePort()];
  const store = options.store === 'file' ? `file:${join(directory, 'store')}` : options.store;
  const words = [
    ...[
      `--inspect=127.0.0.1:${inspector_port}`,
      CLI_PATH,
      'serve',
      '--port',
      String(port),
      '--admin-port',
      String(admin_port),
    ],
    ...['--upstream', `http://127.0.0.1:${upstream_port}/v1`, '--store', store],
  ];
  const holdfast = startProgram(process.execPath, words, log_path, { HOLDFAST_LIMITS_DRAIN_DELAY_MS: '0' });
  started.push(holdfast);
  await untilHttpOk(`http://127.0.0.1:${admin_port}/readyz`, holdfast);
  return { port, admin_port, inspector_port };
}

async function rampUp(streams: Streams): Promise<void> {
  const steps = 50;
  for (let step = 0; step < steps; step += 1) {
    const total = Number(options.streams);
    streams.add(Math.floor(((step + 1) * total) / steps) - Math.floor((step * total) / steps));
    await pause(RAMP_MS / steps);
  }
}

function line(sample: Sample, live: LiveHeap | undefined, { counts }: Streams): string {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  return [
    `${sample.minutes.toFixed(2).padStart(6)} min`,
    `heap ${megabytes(sample.heap_bytes)}`,
    ...(live ? [`live ${megabytes(live.bytes)}`] : []),
    `RSS ${megabytes(sample.resident_bytes)}`,
    `files ${sample.open_fds}`,
    `handles ${sample.handles}`,
    `runs ${sample.active_runs}`,
    `interruptions ${sample.interruptions}`,
    `recoveries ${sample.recoveries}`,
    `open ${counts.open}, intact ${counts.intact}, broken ${counts.broken.length}`,
  ].join('  ');
}
