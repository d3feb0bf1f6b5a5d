import { isDeepStrictEqual } from 'node:util';
import { ACTS } from './acts.ts';
import type { Answer } from './answer.ts';
import type { PlayedAct, Verdict } from './verdict.ts';

const HEADER = ['act', 'cuts', 'plans', 'silence', 'text', 'calls', 'finish', 'tokens', ''];
const GAP = '   ';

/** The header, then one row per act. */
export function table(acts: readonly (PlayedAct & Verdict)[]): string[] {
  const rows = [HEADER, ...acts.map(cells)];
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

function cells({ act, answer, uncut, interruptions, plans, differences }: PlayedAct & Verdict): string[] {
  return [
    String(ACTS.indexOf(act) + 1),
    String(interruptions),
    plans.join(' '),
    `${Math.round(answer.silence_ms)} ms`,
    `${Buffer.byteLength(answer.text)} bytes`,
    outOf(answer.calls.length, uncut.calls.length),
    answer.finish,
    tokens(answer, uncut),
    differences.length === 0 ? 'equal' : 'DIFFERS',
  ];
}

/** A cut attempt has no usage report, so the total is an estimate. */
const tokens = (answer: Answer, uncut: Answer): string =>
  isDeepStrictEqual(answer.usage, uncut.usage)
    ? `${uncut.usage?.total_tokens}`
    : `${answer.usage?.total_tokens} for ${uncut.usage?.total_tokens}`;

const outOf = (count: number, total: number): string =>
  count === total ? `${total}` : `${count} of ${total}`;
