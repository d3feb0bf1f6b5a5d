import { type Results, type ScenarioResult, type Summary, summarise } from './results.ts';
import type { MemoryFigures } from './rows/memory.ts';
import type { Row } from './rows.ts';
import type { Spread } from './statistics.ts';

export interface BudgetResult {
  readonly row: Row;
  /** Title of the scenario or row that was measured. */
  readonly title: string;
  readonly target: string;
  readonly figure: string;
  readonly unit: string;
  /** The median is compared with the limit. Undefined if it couldn't be measured. */
  readonly measured: Spread | undefined;
  readonly limit: number;
  readonly met: boolean;
}

type Limit = Pick<BudgetResult, 'figure' | 'unit' | 'measured' | 'limit'>;

const MEMORY_STORE = 'holdfast-memory';

/** Budgets of the first store. Short answers also have one for the memory store. */
export function checkBudgets({ holdfasts, scenarios, memory }: Results): BudgetResult[] {
  const [first] = holdfasts;
  if (first === undefined) return [];
  return [
    ...scenarios.flatMap((scenario) => {
      const targets = scenario.row === 'short' ? new Set([first, MEMORY_STORE]) : [first];
      return [...targets]
        .filter((target) => holdfasts.includes(target))
        .flatMap((target) => scenarioBudgets(scenario, target));
    }),
    ...memory.filter(({ target }) => target === first).map(memoryBudget),
  ];
}

function scenarioBudgets({ row, title, rounds }: ScenarioResult, target: string): BudgetResult[] {
  const summary = rounds[target] === undefined ? undefined : summarise(rounds, target);
  return limitsOf(row, target, summary)
    .filter(({ figure }) => figure !== 'CPU of nginx' || rounds.nginx !== undefined)
    .map((limit) => judged({ row, title, target }, limit));
}

function limitsOf(row: ScenarioResult['row'], target: string, summary: Summary | undefined): Limit[] {
  const ofPipe = (limit: number): Limit => ({
    figure: 'CPU of pipe',
    unit: '×',
    measured: summary?.cpu_ratio.pipe,
    limit,
  });
  const ofOthers: Limit[] = [
    { figure: 'CPU of nginx', unit: '×', measured: summary?.cpu_ratio.nginx, limit: 2.6 },
    ...(target.startsWith('holdfast-redis') && summary?.cpu_ratio[MEMORY_STORE] !== undefined
      ? [{ figure: 'CPU of memory store', unit: '×', measured: summary.cpu_ratio[MEMORY_STORE], limit: 1.3 }]
      : []),
  ];
  switch (row) {
    case 'short':
      return [ofPipe(target === MEMORY_STORE ? 2.5 : 2.8)];
    case 'starts':
      return [{ figure: 'TTFT p99 of pipe', unit: '×', measured: summary?.first_token_ratio.pipe, limit: 2 }];
    case 'spread': {
      const added_ms = inMilliseconds(summary?.added_latency_us.p50);
      return [
        ofPipe(1.15),
        ...ofOthers,
        { figure: 'added latency p50', unit: 'ms', measured: added_ms, limit: 0.2 },
      ];
    }
    case 'bursts':
      return [ofPipe(1.25), ...ofOthers];
    case 'saturation':
      return [ofPipe(1.5)];
  }
}

function memoryBudget({ target, bytes_per_stream }: MemoryFigures): BudgetResult {
  const kilobytes = bytes_per_stream / 1000;
  const measured = { median: kilobytes, min: kilobytes, max: kilobytes };
  const title = 'memory per open stream';
  return judged({ row: 'memory', title, target }, { figure: 'memory', unit: 'KB', measured, limit: 60 });
}

function judged(of: Pick<BudgetResult, 'row' | 'title' | 'target'>, limit: Limit): BudgetResult {
  return { ...of, ...limit, met: limit.measured !== undefined && limit.measured.median <= limit.limit };
}

function inMilliseconds(microseconds: Spread | undefined): Spread | undefined {
  if (microseconds === undefined) return undefined;
  const { median, min, max } = microseconds;
  return { median: median / 1000, min: min / 1000, max: max / 1000 };
}
