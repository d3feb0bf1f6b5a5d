// Diagrams are Mermaid blocks in the pages. GitHub draws them itself; the site shows drawings from site/diagrams/,
// whose names are derived from the blocks.
import { createHash } from 'node:crypto';

export const SCHEMES = ['light', 'dark'] as const;
export type Scheme = (typeof SCHEMES)[number];

/** The file name of a drawing in `site/diagrams/`. */
export function drawingName(source: string, scheme: Scheme): string {
  const hash = createHash('sha256').update(source.trim()).digest('hex').slice(0, 12);
  return `${hash}-${scheme}.svg`;
}

/** The description of a diagram: its `accDescr`. */
export function descriptionOf(source: string): string {
  const [, description] = /^\s*accDescr: (.+)$/m.exec(source) ?? [];
  if (description === undefined) throw new Error(`a diagram has no accDescr: ${source.slice(0, 80)}`);
  return description;
}
