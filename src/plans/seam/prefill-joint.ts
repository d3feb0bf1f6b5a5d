import { Head, type Joint, type Verdict } from './joint.ts';
import type { Prefix } from './mode.ts';
import { beginsAgain, continuesText, preambleOf, readsOn } from './plausibility.ts';
import { meantRepetitions, repeatedWord, singleRepetition } from './repetition.ts';

/**
 * For targets of which it is not known what they make of a prefix: they may continue it, say all or some of it again first,
 * or answer anew. Whatever leaves a doubt is asked for again by a nudge; where that is impossible (`lastResort`), only a
 * repetition that cannot be anything else is taken off.
 */
export class PrefillJoint implements Joint {
  readonly #prefix: Prefix;
  readonly #lastResort: boolean;
  /** Blanks in front of its answer are those that some tokenisers add to an echo. */
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
