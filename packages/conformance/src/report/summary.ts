import { isAcceptable, VERDICTS, type Verdict } from '../judge.ts';
import type { Result } from '../run.ts';

export interface Summary {
  readonly cases: number;
  /** Verdicts that occur, in the order of {@link VERDICTS}. */
  readonly verdicts: Partial<Record<Verdict, number>>;
  /** Those that mislead an application. */
  readonly failures: number;
}

export function summaryOf(results: readonly Result[]): Summary {
  const count = (verdict: string) => results.filter((result) => result.verdict === verdict).length;
  const counts = Object.keys(VERDICTS).map((verdict) => [verdict, count(verdict)] as const);
  return {
    cases: results.length,
    verdicts: Object.fromEntries(counts.filter(([, number]) => number > 0)),
    failures: results.filter(({ verdict }) => !isAcceptable(verdict)).length,
  };
}
