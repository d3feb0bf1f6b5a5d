import { type BudgetResult, checkBudgets } from './budgets.ts';
import type { StreamingFigures } from './measurements.ts';
import { type Results, type Rounds, summarise } from './results.ts';
import { type Spread, spread } from './statistics.ts';

/** The results as text for a terminal, median and in parentheses the lowest and highest round. */
export function report(results: Results): string {
  const { paced, saturation } = results.shapes;
  const rate = (paced.streams * paced.events_per_s_each).toLocaleString('en');
  const sections = Object.entries(results.paced).map(([arrivals, rounds]) =>
    section(
      `${paced.streams} streams × ${paced.events_per_s_each} events/s = ${rate} events/s, arrivals: ${arrivals}`,
      pacedTable(rounds),
    ),
  );
  return [
    ...sections,
    section(`as fast as it goes, ${saturation.streams} streams`, saturationTable(results.saturation)),
    section('memory per open stream', memoryTable(results)),
    section('budgets', checkBudgets(results).map(budgetRow)),
    ...noiseWarning(results),
    ...Object.entries(results.skipped).map(([name, reason]) => `skipped ${name}: ${reason}\n`),
  ].join('\n');
}

/** Ratios within a round survive a busy machine, latencies do not. */
const NOISE_LIMIT_PERCENT = 15;

function noiseWarning({ paced }: Results): string[] {
  const others = Object.values(paced).flatMap((rounds) =>
    Object.values(rounds).flatMap((figures) => figures.map(({ busy_percent }) => busy_percent.other)),
  );
  const { median, max } = spread(others);
  if (median <= NOISE_LIMIT_PERCENT) return [];
  const share = `${median.toFixed(0)} % of a core (at most ${max.toFixed(0)} %)`;
  return [`the machine did other work meanwhile, ${share}: trust the ratios, not the latencies\n`];
}

function pacedTable(rounds: Rounds<StreamingFigures>): string[][] {
  const heading = ['', 'CPU µs/event', 'of pipe', 'of nginx', 'of memory store', 'stored/delivered'];
  const added = ['added latency p50 µs', 'p99', 'p99.9', 'added first token p50 µs'];
  const busy = ['proxy', 'client', 'provider', 'other %'];
  const rows = Object.keys(rounds).map((name) => {
    const summary = summarise(rounds, name);
    const { p50, p99, p999 } = summary.added_latency_us;
    return [
      name,
      range(summary.cpu_us_per_event, 1),
      range(summary.cpu_ratio.pipe, 2),
      range(summary.cpu_ratio.nginx, 2),
      range(summary.cpu_ratio['holdfast-memory'], 2),
      range(summary.stored_per_delivered, 2),
      ...[p50, p99, p999, summary.added_first_token_us.p50].map((added_us) => range(added_us, 0)),
      ...busyCells(summary.busy_percent),
    ];
  });
  return [[...heading, ...added, ...busy], ...rows];
}

function saturationTable(rounds: Rounds<StreamingFigures>): string[][] {
  const rows = Object.keys(rounds).map((name) => {
    const summary = summarise(rounds, name);
    return [
      name,
      range(summary.events_per_s, 0),
      range(summary.cpu_us_per_event, 1),
      ...busyCells(summary.busy_percent),
    ];
  });
  return [['', 'events/s', 'CPU µs/event', 'proxy', 'client', 'provider', 'other %'], ...rows];
}

function busyCells(busy: StreamingFigures['busy_percent']): string[] {
  return [busy.proxy, busy.client, busy.provider, busy.other].map((percent) => percent.toFixed(0));
}

function memoryTable({ memory }: Results): string[][] {
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
  const rows = memory.map((figures) => [
    figures.target,
    (figures.bytes_per_stream / 1000).toFixed(1),
    String(figures.streams),
    megabytes(figures.baseline_bytes),
    megabytes(figures.open_bytes),
  ]);
  return [['', 'KB', 'streams', 'MB before', 'MB with them open'], ...rows];
}

function budgetRow({ figure, unit, measured, limit, met }: BudgetResult): string[] {
  const verdict = measured === undefined ? 'not measured' : met ? 'met' : 'MISSED';
  return [figure, range(measured, unit === 'KB' ? 0 : 2), unit, `≤ ${limit}`, verdict];
}

function range(figure: Spread | undefined, digits: number): string {
  if (figure === undefined || Number.isNaN(figure.median)) return '–';
  const { median, min, max } = figure;
  if (min === max) return median.toFixed(digits);
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

function section(title: string, rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, column) => Math.max(widest[column] ?? 0, cell.length)),
    [],
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  );
  return `${title}\n${lines.map((line) => `  ${line}`).join('\n')}\n`;
}
