import type { Result } from '../run.ts';
import { summaryOf } from './summary.ts';

/** Everything that decides about the results, so that they can be had again. */
export interface Conditions {
  readonly suite: string;
  readonly seed: number;
  readonly hang_ms: number;
  readonly idle_ms: number;
  readonly silence_ms: number;
  readonly prefill: string;
}

/** Has no times, ids or addresses in it: two runs of the same gateway give the same report. */
export function jsonReport(conditions: Conditions, results: readonly Result[]): string {
  const cases = results.map(({ asked, verdict, requests, seen: { end, shown } }) => ({
    id: asked.id,
    verdict,
    requests,
    end,
    shown: { characters: shown.text.length, calls: shown.calls.length },
  }));
  return `${JSON.stringify({ ...conditions, ...summaryOf(results), results: cases }, null, 2)}\n`;
}
