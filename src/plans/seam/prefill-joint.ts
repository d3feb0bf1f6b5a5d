import { Head, type Joint, type Verdict } from './joint.ts';
import type { Prefix } from './mode.ts';
import { beginsAgain, continuesText, preambleOf, readsOn } from './plausibility.ts';
import { meantRepetitions, repeatedWord, singleRepetition } from './repetition.ts';

/**
 * For targets whose treatment of a prefix is unknown: they may continue it, repeat some or all of it first, or start a
 * new answer. Anything doubtful is rejected, so that a nudge can ask again. As the `lastResort`, this removes only a
 * repetition that can't be anything else.
 */
export class PrefillJoint implements Joint {
  readonly #prefix: Prefix;
  readonly #lastResort: boolean;
  /** Skips leading blanks, which some tokenisers add to an echo. */
  readonly #head: Head;

  constructor(prefix: Prefix, lastResort: boolean) {
    this.#prefix = prefix;
    this.#lastResort = lastResort;
    this.#head = new Head(prefix.sent.trimStart());
  }

  push(character: string): Verdict | undefined {
    this.#head.push(character);
    return this.#head.isUndecided ? undefined : this.#verdict(false);
  }

  end(): Verdict {
    return this.#verdict(true);
  }

  #verdict(ended: boolean): Verdict {
    const { sent, trimmed } = this.#prefix;
    const { text, begin, answer, repetition } = this.#head;
    const visible = sent.trimStart();
    const length = singleRepetition(repetition, visible);
    const isEcho = repetition.alignments.includes(visible.length);
    const isWord = repeatedWord(sent, text) > 0;
    const isRepeated = isEcho || isWord || meantRepetitions(repetition).length > 0;
    if (isRepeated && !this.#lastResort) return { rejected: 'ambiguous' };
    if (!isEcho && beginsAgain(repetition.beginning, visible, !this.#lastResort)) {
      const isCertain = beginsAgain(repetition.beginning, visible, false);
      const rejected = ended ? 'ended_early' : 'diverged';
      return isCertain ? { rejected, shows: 'new_turn' } : { rejected };
    }
    if (!this.#lastResort && (!continuesText(sent, text) || preambleOf(answer, ended) !== ''))
      return { rejected: 'no_continuation', shows: 'new_turn' };
    if (length !== undefined) return { kind: 'aligned', taken: begin + length, shown: trimmed };
    const shows = readsOn(sent, text) ? 'exact' : undefined;
    return { kind: 'unanchored', taken: 0, shown: trimmed, ...(shows && { shows }) };
  }
}
