import type { Joint, Verdict } from './joint.ts';
import type { Prefix } from './mode.ts';
import {
  beginsAgain,
  goesOn,
  HOLD_CHARACTERS,
  mayBecomeChatter,
  PLAUSIBLE_CHARACTERS,
  preambleOf,
  readsOn,
} from './plausibility.ts';
import { meantRepetitions, Repetition, repeatedWord, singleRepetition } from './repetition.ts';

/**
 * For targets of which it is not known what they make of a prefix: they may continue it, say all or some of it again first,
 * or answer anew. Whatever leaves a doubt is asked for again by a nudge; where that is impossible (`lastResort`), only a
 * repetition that cannot be anything else is taken off.
 */
export class PrefillJoint implements Joint {
  readonly #prefix: Prefix;
  readonly #lastResort: boolean;
  readonly #repetition: Repetition;
  #head = '';
  /** Blanks in front of the head, which some tokenisers add to an echo. */
  #blanks = 0;

  constructor(prefix: Prefix, lastResort: boolean) {
    this.#prefix = prefix;
    this.#lastResort = lastResort;
    this.#repetition = new Repetition(prefix.sent.trimStart());
  }

  push(character: string): Verdict | undefined {
    const isBlank = this.#blanks === this.#head.length && character.trim() === '';
    this.#head += character;
    if (isBlank) this.#blanks++;
    else if (this.#repetition.isGoingOn) this.#repetition.push(character);
    return this.#decided();
  }

  end(): Verdict {
    return this.#verdict(true);
  }

  get #answer(): string {
    return this.#head.slice(this.#blanks);
  }

  #decided(): Verdict | undefined {
    const mayStill = this.#answer.length < PLAUSIBLE_CHARACTERS || mayBecomeChatter(this.#answer);
    if (mayStill && this.#head.length < HOLD_CHARACTERS) return undefined;
    return this.#repetition.isGoingOn && this.#answer !== '' ? undefined : this.#verdict(false);
  }

  #verdict(ended: boolean): Verdict {
    const { sent, trimmed } = this.#prefix;
    const repetition = this.#repetition;
    const visible = sent.trimStart();
    const length = singleRepetition(repetition, visible);
    const isEcho = repetition.alignments.includes(visible.length);
    const isWord = repeatedWord(sent, this.#head) > 0;
    const isRepeated = isEcho || isWord || meantRepetitions(repetition).length > 0;
    if (isRepeated && !this.#lastResort) return { rejected: 'ambiguous' };
    if (!isEcho && beginsAgain(repetition.beginning, visible, !this.#lastResort)) {
      const isCertain = beginsAgain(repetition.beginning, visible, false);
      const rejected = ended ? 'ended_early' : 'diverged';
      return isCertain ? { rejected, shows: 'new_turn' } : { rejected };
    }
    if (!this.#lastResort && (!goesOn(sent, this.#head) || preambleOf(this.#answer, ended) !== ''))
      return { rejected: 'no_continuation', shows: 'new_turn' };
    if (length !== undefined) return { kind: 'aligned', taken: this.#blanks + length, shown: trimmed };
    const shows = readsOn(sent, this.#head) ? 'exact' : undefined;
    return { kind: 'unanchored', taken: 0, shown: trimmed, ...(shows && { shows }) };
  }
}
