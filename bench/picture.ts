import type { Spread } from './statistics.ts';

interface Bar {
  readonly name: string;
  readonly value: Spread;
  /** True for Holdfast's own bars. */
  readonly isOwn: boolean;
}

export interface Limit {
  readonly at: number;
  readonly text: string;
}

export interface Panel {
  readonly title: string;
  readonly digits: number;
  readonly bars: readonly Bar[];
  readonly limits: readonly Limit[];
}

interface Words {
  readonly heading: string;
  /** Shown below the heading. */
  readonly circumstances: string;
  /** Text alternative for screen readers. */
  readonly label: string;
  readonly footnote: string;
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

/** Draws panels of bars in two columns as one SVG picture for light and dark pages. */
export function picture(
  panels: readonly Panel[],
  { heading, circumstances, label, footnote }: Words,
): string {
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
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeText(label)}">
<style>${STYLE}</style>
<rect class="paper" width="100%" height="100%"/>
<text class="heading" x="${GAP}" y="32">${escapeText(heading)}</text>
<text class="quiet" x="${GAP}" y="52">${escapeText(circumstances)}</text>
${drawn.join('\n')}
<text class="quiet" x="${GAP}" y="${height - 14}">${escapeText(footnote)}</text>
</svg>
`;
}

function drawPanel({ title, digits, bars, limits }: Panel): string {
  const room = PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH;
  const largest = Math.max(...bars.map((bar) => bar.value.max), ...limits.map((limit) => limit.at));
  const scale = (value: number) => LABEL_WIDTH + (Math.max(0, value) / largest) * room;
  const drawn = bars.map(({ name, value, isOwn }, index) => {
    const y = PANEL_TOP + index * ROW_HEIGHT;
    const middle = y + BAR_HEIGHT / 2;
    const kind = isOwn ? 'bar own' : 'bar';
    const whisker =
      value.min === value.max
        ? ''
        : `<path class="whisker" d="M${scale(value.min).toFixed(1)} ${middle}H${scale(value.max).toFixed(1)}"/>`;
    return `<text x="${LABEL_WIDTH - 10}" y="${middle + 4}" text-anchor="end">${escapeText(name)}</text>
<rect class="${kind}" x="${LABEL_WIDTH}" y="${y}" width="${(scale(value.median) - LABEL_WIDTH).toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>${whisker}
<text x="${LABEL_WIDTH + room + 12}" y="${middle + 4}">${describe(value, digits)}</text>`;
  });
  const bottom = PANEL_TOP + bars.length * ROW_HEIGHT - (ROW_HEIGHT - BAR_HEIGHT) + 4;
  // With two limits, the labels point away from each other so that close limits stay readable.
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

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
