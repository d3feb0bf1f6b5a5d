import { type BudgetResult, checkBudgets } from './budgets.ts';
import { type Results, type ScenarioResult, type Summary, summarise } from './results.ts';
import type { Spread } from './statistics.ts';

interface Bar {
  readonly name: string;
  readonly value: Spread;
}

interface Limit {
  readonly at: number;
  readonly text: string;
}

interface Panel {
  readonly title: string;
  readonly digits: number;
  readonly bars: readonly Bar[];
  readonly limits: readonly Limit[];
}

const PANEL_WIDTH = 400;
const LABEL_WIDTH = 124;
const VALUE_WIDTH = 118;
const BAR_HEIGHT = 18;
const ROW_HEIGHT = 28;
const PANEL_TOP = 54;
const GAP = 24;
const COLUMNS = 2;

const STYLE = `
  svg { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
  .paper { fill: #ffffff; } text { fill: #24292f; } .quiet { fill: #57606a; font-size: 11px; } .title { font-weight: 600; } .heading { font-size: 17px; font-weight: 600; }
  .bar { fill: #afb8c1; } .own { fill: #1a7f5a; } .whisker { stroke: #24292f; } .limit { stroke: #bc4c00; stroke-dasharray: 3 3; } .over { fill: #bc4c00; font-size: 11px; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; } text { fill: #e6edf3; } .quiet { fill: #9198a1; }
    .bar { fill: #57606a; } .own { fill: #2ea97d; } .whisker { stroke: #e6edf3; } .limit { stroke: #f0883e; } .over { fill: #f0883e; }
  }`;

/** The figures that matter as one SVG picture, for light and dark pages. */
export function chart(results: Results): string {
  const panels = panelsOf(results);
  const { processor, cores, node } = results.machine;
  const rows = Math.ceil(panels.length / COLUMNS);
  const most = Math.max(...panels.map((panel) => panel.bars.length));
  const panelHeight = PANEL_TOP + most * ROW_HEIGHT + 8;
  const width = GAP + COLUMNS * (PANEL_WIDTH + GAP);
  const top = 72;
  const height = top + rows * panelHeight + 28;
  const drawn = panels.map((panel, index) => {
    const x = GAP + (index % COLUMNS) * (PANEL_WIDTH + GAP);
    const y = top + Math.floor(index / COLUMNS) * panelHeight;
    return `<g transform="translate(${x} ${y})">${drawPanel(panel)}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="What Holdfast costs per streamed event">
<style>${STYLE}</style>
<rect class="paper" width="100%" height="100%"/>
<text class="heading" x="${GAP}" y="32">What Holdfast costs</text>
<text class="quiet" x="${GAP}" y="52">${escapeText(`${cores} × ${processor}, Node ${node}`)}</text>
${drawn.join('\n')}
<text class="quiet" x="${GAP}" y="${height - 14}">Bars: median of the rounds; whiskers: lowest and highest round; dashed: Holdfast's budget. ${results.measured_at.slice(0, 10)}</text>
</svg>
`;
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
      .map((name) => ({ name, value: value(summarise(rounds, name)) }))
      .filter((bar) => Number.isFinite(bar.value.median)),
    limits,
  });
  const limitOf = (figure: string) =>
    budgets.find((budget) => budget.title === title && budget.figure === figure)?.limit;
  /** Budgets of ratios, where they are on the scale of what they are ratios to. */
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

function drawPanel({ title, digits, bars, limits }: Panel): string {
  const room = PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH;
  const largest = Math.max(...bars.map((bar) => bar.value.max), ...limits.map((limit) => limit.at));
  const scale = (value: number) => LABEL_WIDTH + (Math.max(0, value) / largest) * room;
  const drawn = bars.map(({ name, value }, index) => {
    const y = PANEL_TOP + index * ROW_HEIGHT;
    const middle = y + BAR_HEIGHT / 2;
    const kind = name.startsWith('holdfast') ? 'bar own' : 'bar';
    const whisker =
      value.min === value.max
        ? ''
        : `<path class="whisker" d="M${scale(value.min).toFixed(1)} ${middle}H${scale(value.max).toFixed(1)}"/>`;
    return `<text x="${LABEL_WIDTH - 10}" y="${middle + 4}" text-anchor="end">${escapeText(name)}</text>
<rect class="${kind}" x="${LABEL_WIDTH}" y="${y}" width="${(scale(value.median) - LABEL_WIDTH).toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>${whisker}
<text x="${LABEL_WIDTH + room + 12}" y="${middle + 4}">${describe(value, digits)}</text>`;
  });
  const bottom = PANEL_TOP + bars.length * ROW_HEIGHT - (ROW_HEIGHT - BAR_HEIGHT) + 4;
  // Two labels point away from each other, so that close limits stay readable.
  const ascending = limits.toSorted((left, right) => left.at - right.at);
  const marks = ascending.map(({ at, text }, index) => {
    const x = scale(at).toFixed(1);
    const anchor = limits.length === 1 ? 'middle' : index === 0 ? 'end' : 'start';
    const nudge = { middle: 0, end: 3, start: -3 }[anchor];
    return `<path class="limit" d="M${x} ${PANEL_TOP - 3}V${bottom}"/><text class="over" x="${x}" dx="${nudge}" y="${PANEL_TOP - 8}" text-anchor="${anchor}">${escapeText(text)}</text>`;
  });
  return `<text class="title" x="0" y="18">${escapeText(title)}</text>\n${drawn.join('\n')}\n${marks.join('\n')}`;
}

function describe({ median, min, max }: Spread, digits: number): string {
  const middle = median.toFixed(digits);
  if (min === max) return middle;
  return `${middle} <tspan class="quiet">${min.toFixed(digits)}–${max.toFixed(digits)}</tspan>`;
}

function scaled({ median, min, max }: Spread, factor: number): Spread {
  return { median: median * factor, min: min * factor, max: max * factor };
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
