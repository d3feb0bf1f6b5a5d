import { number } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';
/** Of the drawing, in its own units; CSS gives it its size. */
const BAR = 3;
const GAP = 1;
const HEIGHT = 16;

/** A path with a bar for each value, as high as its share of the largest. Nothing that has happened is invisible. */
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

/** `43 in the last 15 min`: what the bars come to. */
export const sparkText = (values, slot_ms) =>
  `${number(values.reduce((sum, value) => sum + value, 0))} in the last ${(values.length * slot_ms) / 60_000} min`;

/** Shows the values in `figure`, an element that is empty or had others. */
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
