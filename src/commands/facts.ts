import { printable, type Style } from './terminal.ts';

export type Fact = readonly [name: string, value: string];
export type Paint = (text: string, style: Style) => string;

const NAME_WIDTH = 12;

/** One line per fact, starting with its name. */
export const factLines = (facts: readonly Fact[], paint: Paint): string[] =>
  facts.map(([name, value]) => `${paint(name.padEnd(NAME_WIDTH), 'dim')}${printable(value)}`);

export const timeText = (time_s: number): string => new Date(time_s * 1000).toISOString();
