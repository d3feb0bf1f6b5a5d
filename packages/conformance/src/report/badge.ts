import type { Result } from '../run.ts';
import { summaryOf } from './summary.ts';

const LABEL = 'stream conformance';
const CHARACTER_PX = 6.6;
const PADDING_PX = 10;

const widthOf = (text: string): number => Math.round(text.length * CHARACTER_PX) + 2 * PADDING_PX;

/** How many answers were exact, and how many misled the application. */
export function badge(results: readonly Result[]): string {
  const { cases, verdicts, failures } = summaryOf(results);
  const exact = `${verdicts.exact ?? 0} of ${cases} exact`;
  const message = failures === 0 ? exact : `${exact}, ${failures} failed`;
  const [left, right] = [widthOf(LABEL), widthOf(message)];
  const title = `${LABEL}: ${message}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${title}">
  <title>${title}</title>
  <rect width="${left}" height="20" fill="#444"/>
  <rect x="${left}" width="${right}" height="20" fill="${failures === 0 ? '#1a7f37' : '#b35900'}"/>
  <g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    <text x="${left / 2}" y="14">${LABEL}</text>
    <text x="${left + right / 2}" y="14">${message}</text>
  </g>
</svg>
`;
}
