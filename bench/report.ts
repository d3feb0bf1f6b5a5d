import { type BudgetResult, checkBudgets } from './budgets.ts';
import { headroom } from './headroom.ts';
import { type Results, type ScenarioResult, type Summary, summarise } from './results.ts';
import type { StreamingRow } from './scenarios.ts';
import { type Spread, spread } from './statistics.ts';
import { BEFORE } from './target.ts';

interface Column {
  readonly heading: string;
  cell(summary: Summary): string;
}

/** Formats the results for a terminal: the median, then the lowest and highest rounds in parentheses. */
export function report(results: Results): string {
  const budgets = checkBudgets(results);
  return [
    ...results.scenarios.map((scenario) => scenarioSection(scenario, budgets)),
    ...(results.memory.length === 0
      ? []
      : [section('memory per open stream', memoryTable(results, budgets))]),
    section('budgets', budgets.map(budgetRow)),
    ...noiseWarning(results),
    ...Object.entries(results.skipped).map(([name, reason]) => `skipped ${name}: ${reason}\n`),
  ].join('\n');
}

/** Ratios within a round survive a busy machine; latencies don't. */
const NOISE_LIMIT_PERCENT = 15;

function noiseWarning({ scenarios }: Results): string[] {
  const others = scenarios.flatMap(({ rounds }) =>
    Object.values(rounds).flatMap((figures) => figures.map(({ busy_percent }) => busy_percent.other)),
  );
  const { median, max } = spread(others);
  if (others.length === 0 || median <= NOISE_LIMIT_PERCENT) return [];
  const share = `${median.toFixed(0)} % of a core (at most ${max.toFixed(0)} %)`;
  return [`the machine did other work meanwhile, ${share}: trust the ratios, not the latencies\n`];
}

const cpuPerEvent: Column = {
  heading: 'CPU µs/event',
  cell: (summary) => range(summary.cpu_us_per_event, 1),
};
const cpuPerStream: Column = {
  heading: 'CPU µs/stream',
  cell: (summary) => range(summary.cpu_us_per_stream, 0),
};
const firstToken: readonly Column[] = (['p50', 'p99'] as const).map((quantile) => ({
  heading: `TTFT ${quantile} ms`,
  cell: (summary) => range(summary.first_token_us[quantile], 1, 1e-3),
}));
const busy: readonly Column[] = (['proxy', 'client', 'provider', 'other'] as const).map((of) => ({
  heading: `${of} %`,
  cell: (summary) => summary.busy_percent[of].toFixed(0),
}));

function cpuOf(baseline: string, name = baseline): Column {
  return { heading: `CPU of ${name}`, cell: (summary) => range(summary.cpu_ratio[baseline], 2) };
}

const PACED: readonly Column[] = [
  cpuPerEvent,
  cpuOf('pipe'),
  cpuOf('nginx'),
  cpuOf('holdfast-memory', 'memory store'),
  cpuOf(BEFORE),
  { heading: 'stored/delivered', cell: (summary) => range(summary.stored_per_delivered, 2) },
  ...(['p50', 'p99', 'p999'] as const).map((quantile) => ({
    heading: `added latency ${quantile} µs`,
    cell: (summary: Summary) => range(summary.added_latency_us[quantile], 0),
  })),
  { heading: 'added first token p50 µs', cell: (summary) => range(summary.added_first_token_us, 0) },
  ...busy,
];

const COLUMNS: Readonly<Record<StreamingRow, readonly Column[]>> = {
  short: [
    { heading: 'streams/s', cell: (summary) => range(summary.streams_per_s, 0) },
    ...[cpuPerStream, cpuOf('pipe'), cpuOf('nginx'), cpuOf(BEFORE), ...firstToken, ...busy],
  ],
  starts: [
    ...firstToken,
    { heading: 'p99 of pipe', cell: (summary) => range(summary.first_token_ratio.pipe, 2) },
    ...[cpuPerStream, cpuOf('pipe'), cpuOf(BEFORE), ...busy],
  ],
  spread: PACED,
  bursts: PACED,
  saturation: [
    { heading: 'events/s', cell: (summary) => range(summary.events_per_s, 0) },
    ...[cpuPerEvent, cpuOf('pipe'), cpuOf('nginx'), cpuOf(BEFORE), ...busy],
  ],
};

function scenarioSection(scenario: ScenarioResult, budgets: readonly BudgetResult[]): string {
  const summaries = Object.keys(scenario.rounds).map(
    (name) => [name, summarise(scenario.rounds, name)] as const,
  );
  const columns = COLUMNS[scenario.row].filter(({ cell }) =>
    summaries.some(([, summary]) => cell(summary) !== MISSING),
  );
  const rows = summaries.map(([name, summary]) => [
    name,
    ...columns.map(({ cell }) => cell(summary)),
    verdicts(budgets, scenario.title, name),
  ]);
  const table = [['', ...columns.map(({ heading }) => heading), 'budgets'], ...rows];
  return `${section(scenario.title, table)}  ${headroom(scenario)}\n`;
}

function memoryTable({ memory }: Results, budgets: readonly BudgetResult[]): string[][] {
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
  const rows = memory.map((figures) => [
    figures.target,
    (figures.bytes_per_stream / 1000).toFixed(1),
    String(figures.streams),
    megabytes(figures.baseline_bytes),
    megabytes(figures.open_bytes),
    verdicts(budgets, 'memory per open stream', figures.target),
  ]);
  return [['', 'KB', 'streams', 'MB before', 'MB with them open', 'budgets'], ...rows];
}

function verdicts(budgets: readonly BudgetResult[], title: string, target: string): string {
  return budgets
    .filter((budget) => budget.title === title && budget.target === target)
    .map((budget) => `${budget.figure} ${limitText(budget)}: ${verdict(budget)}`)
    .join(', ');
}

function budgetRow(budget: BudgetResult): string[] {
  const { title, target, figure, unit, measured } = budget;
  return [
    `${title}, ${target}`,
    figure,
    range(measured, unit === 'KB' ? 0 : 2),
    limitText(budget),
    verdict(budget),
  ];
}

function limitText({ limit, unit }: BudgetResult): string {
  return `≤ ${limit} ${unit}`;
}

function verdict({ measured, met }: BudgetResult): string {
  if (measured === undefined) return 'not measured';
  return met ? 'met' : 'MISSED';
}

const MISSING = '–';

function range(figure: Spread | undefined, digits: number, scale = 1): string {
  if (figure === undefined || Number.isNaN(figure.median)) return MISSING;
  const [median, min, max] = [figure.median, figure.min, figure.max].map((value) =>
    (value * scale).toFixed(digits),
  );
  return figure.min === figure.max ? `${median}` : `${median} (${min}–${max})`;
}

function section(title: string, rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, column) => Math.max(widest[column] ?? 0, cell.length)),
    [],
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        // Words align left, numbers right.
        return column === 0 || column === row.length - 1 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd(),
  );
  return `${title}\n${lines.map((line) => `  ${line}`).join('\n')}\n`;
}
