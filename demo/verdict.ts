import { isDeepStrictEqual } from 'node:util';
import type { LogLine } from '../src/demo/narration.ts';
import type { Act } from './acts.ts';
import type { Answer, Call } from './answer.ts';

/** A played act: the answer through Holdfast, Holdfast's log, and the provider's uncut answer. */
export interface PlayedAct {
  readonly act: Act;
  readonly answer: Answer;
  readonly log: readonly LogLine[];
  readonly uncut: Answer;
}

export interface Verdict {
  readonly interruptions: number;
  readonly plans: readonly string[];
  readonly differences: readonly string[];
}

/** Compares an answer with the uncut one, byte for byte. */
export function judge({ act, answer, log, uncut }: PlayedAct): Verdict {
  const interrupted = log.filter(({ msg }) => msg === 'interrupted');
  const plans = interrupted.map(({ plan = '' }) => plan);
  const differences = [
    // An answer that was never cut proves nothing.
    interrupted.length < act.script.faults.length + (act.killed_at === undefined ? 0 : 1) && 'it was not cut',
    answer.text !== uncut.text && 'the text differs',
    !areWhole(answer.calls, uncut.calls, plans.includes('R2')) && 'the calls differ',
    answer.finish !== uncut.finish && 'the finish reason differs',
  ];
  return {
    interruptions: interrupted.length,
    plans,
    differences: differences.filter((each) => each !== false),
  };
}

/**
 * After R2 the answer consists of the calls that were complete: possibly fewer than in the uncut answer, but none
 * partial.
 */
function areWhole(calls: readonly Call[], uncut: readonly Call[], settled: boolean): boolean {
  if (!settled) return isDeepStrictEqual(calls, uncut);
  const made = calls.every((call) => uncut.some((candidate) => isDeepStrictEqual(candidate, call)));
  return calls.length > 0 && made;
}
