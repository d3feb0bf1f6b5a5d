// What Holdfast costs beside a bare node:http pipe, nginx and no proxy at all, measured in one run.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkBudgets } from './budgets.ts';
import { chart } from './chart.ts';
import { Load } from './load.ts';
import {
  ARRIVALS,
  type Bench,
  type MemoryFigures,
  measureMemory,
  measurePaced,
  measureSaturation,
  type StreamingFigures,
} from './measurements.ts';
import { findNginx } from './nginx.ts';
import { nextMessage, startScript } from './processes.ts';
import { report } from './report.ts';
import type { Results, Rounds } from './results.ts';
import type { StartTarget, Target } from './target.ts';
import { chooseTargets } from './targets.ts';

const USAGE = `npm run bench -- [options]
  --full                  longer windows, more rounds, and bursts besides spread arrivals
  --store STORE           file (default), memory, redis (a server of its own) or redis://…, with ,write_ahead at the end
                          for that durability; again to measure several side by side
  --arrivals MODE         spread (default: streams evenly interleaved) or bursts (the events of a millisecond at once)
  --streams N             paced streams (default 200)
  --events-per-second N   of each paced stream (default 50)
  --rounds N              rounds over all targets (default 3, with --full 5)
  --window-seconds N      measured time per round and proxy (default 3, with --full 10)
  --assert                exit with 1 unless every budget is met`;

const { values: options } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    store: { type: 'string', multiple: true, default: ['file'] },
    arrivals: { type: 'string', multiple: true },
    streams: { type: 'string', default: '200' },
    'events-per-second': { type: 'string', default: '50' },
    rounds: { type: 'string' },
    'window-seconds': { type: 'string' },
    assert: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const { full } = options;
const rounds = Number(options.rounds ?? (full ? 5 : 3));
const arrivalModes = ARRIVALS.filter((mode) =>
  (options.arrivals ?? (full ? ARRIVALS : ['spread'])).includes(mode),
);
const paced = {
  streams: Number(options.streams),
  events_per_s_each: Number(options['events-per-second']),
  ramp_ms: 500,
  warm_up_ms: 800,
  window_ms: Number(options['window-seconds'] ?? (full ? 10 : 3)) * 1000,
};
const saturation = { streams: 16, events_each: full ? 40_000 : 15_000 };
const memory = { streams: 1000, ramp_ms: 2000, hold_ms: 3000 };

if (options.help) console.log(USAGE);
else await main();

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const started: { stop(): Promise<void> }[] = [];
  try {
    const provider = startScript(join(import.meta.dirname, 'provider.ts'));
    started.push(provider);
    const { port } = await nextMessage<{ port: number }>(provider);
    const load = new Load();
    started.push(load);
    const { starts, skipped } = chooseTargets(options.store);
    for (const [name, reason] of skipped) console.log(`skipped ${name}: ${reason}`);

    const bench: Bench = { load, provider };
    const start = (startTarget: StartTarget) => startTarget(port, directory);
    const memoryFigures = await eachMemory(bench, [...starts.values()], start);
    const targets: Target[] = [];
    for (const startTarget of starts.values()) {
      const target = await start(startTarget);
      targets.push(target);
      started.push(target);
    }
    const results: Results = {
      measured_at: new Date().toISOString(),
      machine: describeMachine(),
      stores: options.store,
      shapes: { paced, saturation },
      skipped: Object.fromEntries(skipped),
      ...(await allStreaming(bench, targets)),
      memory: memoryFigures,
    };
    publish(results);
  } catch (error) {
    console.error(`the logs are kept in ${directory}`);
    throw error;
  } finally {
    for (const running of started.reverse()) await running.stop();
  }
  rmSync(directory, { recursive: true, force: true });
}

async function eachMemory(
  bench: Bench,
  starts: readonly StartTarget[],
  start: (startTarget: StartTarget) => Promise<Target>,
): Promise<MemoryFigures[]> {
  const figures: MemoryFigures[] = [];
  for (const startTarget of starts) {
    const target = await start(startTarget);
    try {
      const { pid } = target;
      if (pid !== undefined) figures.push(await measureMemory(bench, { ...target, pid }, memory));
    } finally {
      await target.stop();
    }
  }
  return figures;
}

async function allStreaming(
  bench: Bench,
  targets: readonly Target[],
): Promise<Pick<Results, 'paced' | 'saturation'>> {
  progress('warming up');
  // Compilers of hot code settle here, so that the first round is like the last.
  for (const target of targets) await measurePaced(bench, target, 'spread', { ...paced, window_ms: 1000 });
  const pacedRounds: Results['paced'] = {};
  for (const arrivals of arrivalModes) {
    pacedRounds[arrivals] = await alternate(targets, `arrivals: ${arrivals}`, (target) =>
      measurePaced(bench, target, arrivals, paced),
    );
  }
  const saturationRounds = await alternate(targets, 'as fast as it goes', (target) =>
    measureSaturation(bench, target, saturation),
  );
  return { paced: pacedRounds, saturation: saturationRounds };
}

/** A B C D A B C D …: whatever else the machine does falls on all of them alike. */
async function alternate(
  targets: readonly Target[],
  title: string,
  measure: (target: Target) => Promise<StreamingFigures>,
): Promise<Rounds<StreamingFigures>> {
  const figures: Record<string, StreamingFigures[]> = {};
  for (let round = 1; round <= rounds; round += 1) {
    for (const target of targets) {
      const measured = await measure(target);
      figures[target.name] = [...(figures[target.name] ?? []), measured];
      const cpu = measured.cpu_us_per_event?.toFixed(1) ?? '–';
      progress(`${title}, round ${round}/${rounds}, ${target.name}: ${cpu} µs of CPU per event`);
    }
  }
  return figures;
}

function publish(results: Results): void {
  const folder = join(import.meta.dirname, 'results');
  mkdirSync(folder, { recursive: true });
  const budgets = checkBudgets(results);
  writeFileSync(join(folder, 'latest.json'), `${JSON.stringify({ ...results, budgets }, null, 2)}\n`);
  writeFileSync(join(folder, 'latest.svg'), chart(results));
  console.log(`\n${report(results)}\nwritten: bench/results/latest.json, bench/results/latest.svg`);
  const missed = budgets.filter((budget) => !budget.met);
  if (options.assert && missed.length > 0) {
    console.error(`budget not met: ${missed.map((budget) => budget.figure).join('; ')}`);
    process.exitCode = 1;
  }
}

function describeMachine(): Results['machine'] {
  const nginx = findNginx();
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    node: process.version,
    ...(nginx && { nginx: nginxVersion(nginx) }),
  };
}

function nginxVersion(program: string): string {
  // It answers on standard error.
  const text = execFileSync('/bin/sh', ['-c', '"$0" -v 2>&1', program], { encoding: 'utf8' });
  return text.trim().replace(/^.*nginx\//, '');
}

function progress(line: string): void {
  console.log(`[${performance.now().toFixed(0).padStart(6)} ms] ${line}`);
}
