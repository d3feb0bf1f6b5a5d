// Measures in one run what Holdfast costs compared with a bare node:http pipe, nginx and no proxy at all.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkBudgets } from './budgets.ts';
import { chart } from './chart.ts';
import type { Bench, Figures } from './figures.ts';
import { Load } from './load.ts';
import { type Options, readOptions, USAGE } from './options.ts';
import { nextMessage, startScript } from './processes.ts';
import { findNginx } from './proxies/nginx.ts';
import { report } from './report.ts';
import type { Results, Rounds, ScenarioResult } from './results.ts';
import { type MemoryFigures, measureMemory } from './rows/memory.ts';
import { type Scenario, type StreamingRow, scenariosOf } from './scenarios.ts';
import type { StartTarget, Target } from './target.ts';
import { chooseTargets, holdfastName } from './targets.ts';

const MEMORY = { streams: 1000, ramp_ms: 2000, hold_ms: 3000 };
const RESULTS = join(import.meta.dirname, 'results');

const options = optionsOrUsage();
if (options?.help) console.log(USAGE);
else if (options !== undefined) await main(options);

function optionsOrUsage(): Options | undefined {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exitCode = 2;
    return undefined;
  }
}

async function main(options: Options): Promise<void> {
  const { starts, gateways, skipped } = chooseTargets(options);
  for (const [name, reason] of skipped) console.log(`skipped ${name}: ${reason}`);
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const started: { stop(): Promise<void> }[] = [];
  try {
    const provider = startScript(join(import.meta.dirname, 'provider.ts'));
    started.push(provider);
    const { port } = await nextMessage<{ port: number }>(provider);
    const load = new Load();
    started.push(load);
    const bench: Bench = { load, provider };
    const start = (startTarget: StartTarget) => startTarget(port, mkdtempSync(join(directory, 'target-')));

    const memory: MemoryFigures[] = [];
    const scenarios: ScenarioResult[] = [];
    for (const row of options.rows) {
      if (row === 'memory') memory.push(...(await eachMemory(bench, [...starts.values()], start)));
      else {
        const compared = [...starts.values(), ...(row === 'short' ? gateways.values() : [])];
        scenarios.push(...(await measureRow(bench, row, compared, start, options)));
      }
    }
    publish(options, {
      measured_at: new Date().toISOString(),
      machine: describeMachine(),
      holdfasts: options.stores.map(holdfastName).filter((name) => starts.has(name)),
      skipped: Object.fromEntries(skipped),
      scenarios,
      memory,
    });
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
      if (pid === undefined) continue;
      const measured = await measureMemory(bench, { ...target, pid }, MEMORY);
      figures.push(measured);
      progress(`memory, ${target.name}: ${(measured.bytes_per_stream / 1000).toFixed(1)} KB per stream`);
    } finally {
      await target.stop();
    }
  }
  return figures;
}

/** Starts fresh targets for each row, so that the result doesn't depend on which other rows are measured. */
async function measureRow(
  bench: Bench,
  row: StreamingRow,
  starts: readonly StartTarget[],
  start: (startTarget: StartTarget) => Promise<Target>,
  options: Options,
): Promise<ScenarioResult[]> {
  const targets: Target[] = [];
  try {
    for (const startTarget of starts) targets.push(await start(startTarget));
    const results: ScenarioResult[] = [];
    for (const scenario of scenariosOf(row, options)) {
      progress(`${scenario.title}: warming up`);
      for (const target of targets) await scenario.warmUp(bench, target);
      const rounds = await alternate(bench, targets, scenario, options.rounds);
      results.push({ row, title: scenario.title, rounds });
    }
    return results;
  } finally {
    await Promise.all(targets.map((target) => target.stop()));
  }
}

/**
 * Runs the targets in turn, so that noise on the machine affects them all alike, and in a random order, because no fixed
 * one is fair. Measured with the same build as two targets: the one that comes after the other costs up to 6 % more, and
 * one whose windows follow each other up to 10 % less.
 */
async function alternate(
  bench: Bench,
  targets: readonly Target[],
  scenario: Scenario,
  rounds: number,
): Promise<Rounds> {
  const figures: Record<string, Figures[]> = {};
  for (let round = 1; round <= rounds; round += 1) {
    for (const target of shuffled(targets)) {
      const measured = await scenario.measure(bench, target);
      figures[target.name] = [...(figures[target.name] ?? []), measured];
      const cpu = measured.cpu_us_per_event?.toFixed(1) ?? '–';
      progress(`${scenario.title}, round ${round}/${rounds}, ${target.name}: ${cpu} µs of CPU per event`);
    }
  }
  return figures;
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  const keyed = items.map((item) => ({ item, key: Math.random() }));
  return keyed.sort((one, other) => one.key - other.key).map(({ item }) => item);
}

function publish({ save, assert }: Options, results: Results): void {
  const budgets = checkBudgets(results);
  console.log(`\n${report(results)}`);
  if (save) {
    mkdirSync(RESULTS, { recursive: true });
    writeFileSync(join(RESULTS, 'latest.json'), `${JSON.stringify({ ...results, budgets }, null, 2)}\n`);
    writeFileSync(join(RESULTS, 'latest.svg'), chart(results));
    console.log('written: bench/results/latest.json, bench/results/latest.svg');
  }
  const missed = budgets.filter((budget) => !budget.met);
  if (assert && missed.length > 0) {
    const texts = missed.map(({ title, target, figure }) => `${title}, ${target}, ${figure}`);
    console.error(`budget not met: ${texts.join('; ')}`);
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
  // nginx prints its version to standard error.
  const text = execFileSync('/bin/sh', ['-c', '"$0" -v 2>&1', program], { encoding: 'utf8' });
  return text.trim().replace(/^.*nginx\//, '');
}

function progress(line: string): void {
  console.log(`[${performance.now().toFixed(0).padStart(6)} ms] ${line}`);
}
