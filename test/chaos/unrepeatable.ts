import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { fetchRun } from '../e2e/talk.ts';
import type { Plan } from '../provider/script.ts';
import { readStream } from '../simulation/stream-reading.ts';
import { judge, type Received, receive, Tally, type Verdict } from './verdict.ts';

const DELAY_MS = 30;
/** A run that never ends is a failure, too. */
const READ_MAX_MS = 30_000;

/**
 * An answer of this many words. Each continuation has the same length, but its words begin with a letter of its own.
 */
export function unrepeatable(words: number): Plan {
  let continuations = 0;
  const text = Array.from({ length: words }, (_, index) => `a${index}`).join(' ');
  const prefill: NonNullable<NonNullable<Plan['says']>['prefill']> = ({ whole, sent }) => {
    const letter = String.fromCharCode('b'.charCodeAt(0) + (continuations++ % 25));
    return whole.slice(sent.length).replaceAll('a', letter);
  };
  return { parts: [{ text }], says: { prefill }, delay_ms: DELAY_MS, prefill: 'vllm' };
}

/** The part that all continuations share. */
const withoutLetters = (text: string): string => text.replaceAll(/[a-z]/g, 'a');

/** The letters of the continuations that an answer consists of. */
const lettersOf = ({ body }: Received): string =>
  [...new Set(readStream(body).text.match(/[a-z]/g))].join('');

/** Reads a run from its beginning on one replica. */
export const readRun = (replica: HoldfastProcess, run: string): Promise<Received> =>
  receive(() => {
    const signal = AbortSignal.timeout(READ_MAX_MS);
    return fetchRun(replica, `${run}/stream?starting_after=0`, { signal });
  });

/** Judges an {@link unrepeatable} answer by the part that all its continuations share. */
export const verdictOf = (received: Received, plan: Plan): Verdict => judge(received, plan, withoutLetters);

/** The verdicts on what first clients received, and on what later readers received from the same runs. */
export class Comparison {
  readonly first: Tally;
  readonly others: Tally;

  constructor(name: string) {
    this.first = new Tally(name);
    this.others = new Tally(`${name}, read by others`);
  }

  /**
   * Adds the answers that different clients received from one run, the first client's first. If complete answers
   * differ, all of them are wrong.
   */
  add(name: string, plan: Plan, answers: readonly Received[]): void {
    const verdicts = answers.map((received) => verdictOf(received, plan));
    const complete = answers.filter((_, index) => verdicts[index]?.kind === 'exact').map(lettersOf);
    const isDiverged = new Set(complete).size > 1;
    for (const [index, verdict] of verdicts.entries()) {
      const received = answers[index] as Received;
      const said = isDiverged && verdict.kind === 'exact' ? diverged(verdict, complete) : verdict;
      (index === 0 ? this.first : this.others).add(`${name} ${received.run}`, said, received);
    }
  }

  get wrong(): readonly string[] {
    return [...this.first.of('wrong'), ...this.others.of('wrong')];
  }

  report(): string {
    return `${this.first.report()}\n${this.others.report()}`;
  }
}

const diverged = (verdict: Verdict, complete: readonly string[]): Verdict => ({
  ...verdict,
  kind: 'wrong',
  why: `different answers are complete: ${complete.join(', ')}`,
});
