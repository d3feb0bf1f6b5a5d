import { ACTS } from './acts.ts';
import type { Performance, Verdict } from './verdict.ts';

const HEADER = ['act', 'interruptions', 'plans', 'longest silence', 'text', 'calls', 'finish', 'usage', ''];
const GAP = '   ';

/** One row per act, the header first. */
export function table(acts: readonly (Performance & Verdict)[]): string[] {
  const rows = [HEADER, ...acts.map(cells)];
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

function cells({ act, answer, interruptions, plans, calls, usage, differences }: Performance & Verdict): string[] {
  return [
    String(ACTS.indexOf(act) + 1),
    String(interruptions),
    plans.join(' '),
    `${Math.round(answer.silence_ms)} ms`,
    `${Buffer.byteLength(answer.text)} bytes`,
    calls,
    answer.finish,
    usage,
    differences.length === 0 ? 'equal' : 'DIFFERS',
  ];
}
