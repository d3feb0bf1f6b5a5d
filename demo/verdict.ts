import { isDeepStrictEqual } from 'node:util';
import type { Act } from './acts.ts';
import type { Answer, Call } from './answer.ts';
import type { LogLine } from './narration.ts';

/** One act as it was played: what came through Holdfast, what its log said, and the provider's uncut answer. */
export interface Performance {
  readonly act: Act;
  readonly answer: Answer;
  readonly log: readonly LogLine[];
  readonly uncut: Answer;
}

export interface Verdict {
  readonly interruptions: number;
  readonly plans: readonly string[];
  /** `n of m`, where a call was given up. */
  readonly calls: string;
  /** Where the usage report comes from: it can be exact only if the whole answer was delivered. */
  readonly usage: 'exact' | 'estimated';
  /** In words; empty when the answer is what it should be. */
  readonly differences: readonly string[];
}

/** Compares an answer with the uncut one, byte for byte. */
export function judge({ act, answer, log, uncut }: Performance): Verdict {
  const interrupted = log.filter(({ msg }) => msg === 'interrupted');
  const plans = interrupted.map(({ plan = '' }) => plan);
  const settled = plans.includes('R2');
  const differences: string[] = [];
  const expect = (what: string, same: boolean) => same || differences.push(what);

  expect('not interrupted as often as it should be', interrupted.length === act.script.faults.length);
  expect('the text differs', answer.text === uncut.text);
  expect('the finish reason differs', answer.finish === uncut.finish);
  if (settled) {
    // The calls that were whole are the answer: fewer than there would have been, but none in part.
    expect('a call differs', answer.calls.length > 0 && answer.calls.every((call) => isIn(uncut.calls, call)));
  } else {
    expect('the calls differ', isDeepStrictEqual(answer.calls, uncut.calls));
    expect('the usage differs', isDeepStrictEqual(answer.usage, uncut.usage));
  }
  const made = uncut.calls.length;
  return {
    interruptions: interrupted.length,
    plans,
    calls: answer.calls.length === made ? `${made}` : `${answer.calls.length} of ${made}`,
    usage: settled ? 'estimated' : 'exact',
    differences,
  };
}

const isIn = (calls: readonly Call[], call: Call): boolean =>
  calls.some((candidate) => isDeepStrictEqual(candidate, call));
