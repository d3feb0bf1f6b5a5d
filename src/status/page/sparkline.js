import { number } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';
/** Sizes in the drawing's own units; CSS sets the displayed size. */
const BAR = 3;
const GAP = 1;
const HEIGHT = 16;

/** A path with a bar per value, scaled to the largest. Values above 0 always stay visible. */
export function sparkPath(values) {
  const most = Math.max(1, ...values);
  return values
    .map((value, index) => {
      if (value === 0) return '';
      const height = Math.max(1.5, (HEIGHT * value) / most);
      return `M${index * (BAR + GAP)} ${HEIGHT}v${-round(height)}h${BAR}V${HEIGHT}z`;
    })
    .join('');
}

/** The sum of the bars in words: `43 in the last 15 min`. */
export const sparkText = (values, slot_ms) =>
  `${number(values.reduce((sum, value) => sum + value, 0))} in the last ${(values.length * slot_ms) / 60_000} min`;

/** Draws the values in `figure`, which is empty or has an earlier drawing. */
export function showSparkline(figure, values, slot_ms) {
  const path = sparkPath(values);
  const svg = figure.querySelector('svg') ?? figure.appendChild(createDrawing());
  const text = sparkText(values, slot_ms);
  if (figure.title === text && svg.firstChild.getAttribute('d') === path) return;
  figure.title = text;
  svg.setAttribute('aria-label', text);
  svg.setAttribute('viewBox', `0 0 ${values.length * (BAR + GAP) - GAP} ${HEIGHT}`);
  svg.firstChild.setAttribute('d', path);
}

function createDrawing() {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('role', 'img');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.append(document.createElementNS(SVG, 'path'));
  return svg;
}

const round = (value) => Math.round(value * 10) / 10;
