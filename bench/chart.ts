import { type BudgetResult, checkBudgets } from './budgets.ts';
import { type Limit, type Panel, picture } from './picture.ts';
import { type Results, type ScenarioResult, type Summary, summarise } from './results.ts';
import type { Spread } from './statistics.ts';

/** Draws the headline figures as one SVG picture. */
export function chart(results: Results): string {
  const { processor, cores, node } = results.machine;
  return picture(panelsOf(results), {
    heading: 'What Holdfast costs',
    circumstances: `${cores} × ${processor}, Node ${node}`,
    label: 'What Holdfast costs per streamed event',
    footnote: `Bars: median of the rounds; whiskers: lowest and highest round; dashed: Holdfast's budget. ${results.measured_at.slice(0, 10)}`,
  });
}

function panelsOf(results: Results): Panel[] {
  const budgets = checkBudgets(results);
  const memoryLimit = budgets.find(({ row }) => row === 'memory')?.limit;
  return [
    ...results.scenarios.flatMap((scenario) => scenarioPanels(scenario, budgets)),
    {
      title: 'memory per open stream, KB',
      digits: 0,
      bars: results.memory.map(({ target, bytes_per_stream }) => ({
        name: target,
        isOwn: isHoldfast(target),
        value: scaled({ median: bytes_per_stream, min: bytes_per_stream, max: bytes_per_stream }, 1e-3),
      })),
      limits: memoryLimit === undefined ? [] : [{ at: memoryLimit, text: `${memoryLimit} KB` }],
    },
  ];
}

function scenarioPanels({ row, title, rounds }: ScenarioResult, budgets: readonly BudgetResult[]): Panel[] {
  const panel = (figure: string, digits: number, limits: Limit[], value: (summary: Summary) => Spread) => ({
    title: `${row === 'short' || row === 'starts' ? title : row}: ${figure}`,
    digits,
    bars: Object.keys(rounds)
      .map((name) => ({ name, value: value(summarise(rounds, name)), isOwn: isHoldfast(name) }))
      .filter((bar) => Number.isFinite(bar.value.median)),
    limits,
  });
  const limitOf = (figure: string) =>
    budgets.find((budget) => budget.title === title && budget.figure === figure)?.limit;
  /** Limits given as ratios, converted to absolute positions on the panel's scale. */
  const ratioLimits = (word: string, value: (summary: Summary) => Spread): Limit[] =>
    ['pipe', 'nginx'].flatMap((name) => {
      const factor = limitOf(`${word} of ${name}`);
      if (factor === undefined || rounds[name] === undefined) return [];
      return [{ at: factor * value(summarise(rounds, name)).median, text: `${factor} × ${name}` }];
    });
  const cpuPerEvent = (summary: Summary) => summary.cpu_us_per_event;
  const cpuPerStream = (summary: Summary) => summary.cpu_us_per_stream;
  switch (row) {
    case 'short':
      return [panel('CPU per stream, µs', 0, ratioLimits('CPU', cpuPerStream), cpuPerStream)];
    case 'starts': {
      const firstToken_ms = (summary: Summary) => scaled(summary.first_token_us.p99, 1e-3);
      return [panel('TTFT p99, ms', 0, ratioLimits('TTFT p99', firstToken_ms), firstToken_ms)];
    }
    case 'spread': {
      const limit_ms = limitOf('added latency p50');
      const latencyLimits = limit_ms === undefined ? [] : [{ at: limit_ms, text: `${limit_ms} ms` }];
      return [
        panel('CPU per event, µs', 1, ratioLimits('CPU', cpuPerEvent), cpuPerEvent),
        panel('added latency per event, median, ms', 3, latencyLimits, (summary) =>
          scaled(summary.added_latency_us.p50, 1e-3),
        ),
      ];
    }
    case 'bursts':
    case 'saturation':
      return [panel('CPU per event, µs', 1, ratioLimits('CPU', cpuPerEvent), cpuPerEvent)];
  }
}

const isHoldfast = (target: string) => target.startsWith('holdfast');

function scaled({ median, min, max }: Spread, factor: number): Spread {
  return { median: median * factor, min: min * factor, max: max * factor };
}
