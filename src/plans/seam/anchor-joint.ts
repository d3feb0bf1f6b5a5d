import { speakable } from '../../lib/text.ts';
import { anchorOf } from './anchor.ts';
import type { Joint, Verdict } from './joint.ts';
import {
  beginsAgain,
  goesOn,
  HOLD_CHARACTERS,
  mayBecomeChatter,
  PLAUSIBLE_CHARACTERS,
  preambleOf,
} from './plausibility.ts';
import { meantRepetitions, Repetition, repeatedWord, singleRepetition } from './repetition.ts';

/**
 * For answers to a nudge, which are asked to begin with the anchor: exactly that is taken off, once. A model that repeats
 * more than it was asked to is joined at the shortest repetition that ends with the anchor.
 *
 * An answer without the anchor is asked for again in stronger words, unless this is the `lastResort`.
 */
export class AnchorJoint implements Joint {
  readonly #delivered: string;
  /** What can be repeated: everything but the white space at its end. */
  readonly #visible: string;
  /** Delivered behind that. */
  readonly #shown: string;
  readonly #anchor_characters: number;
  readonly #lastResort: boolean;
  #repetition: Repetition;
  #head = '';
  /** Where in the head the answer itself begins: behind a lead-in and blanks. */
  #begin = 0;
  /** Where the lead-in ends, if there is one. */
  #preamble = 0;

  constructor(delivered: string, lastResort: boolean) {
    this.#delivered = delivered;
    this.#visible = speakable(delivered).trimEnd();
    this.#shown = delivered.slice(this.#visible.length);
    this.#anchor_characters = anchorOf(delivered).trimEnd().length;
    this.#lastResort = lastResort;
    this.#repetition = new Repetition(this.#visible);
  }

  push(character: string): Verdict | undefined {
    const isBlank = this.#answer === '' && character.trim() === '';
    this.#head += character;
    if (isBlank) this.#begin++;
    else if (this.#repetition.isGoingOn) this.#repetition.push(character);
    return this.#anchored() ?? this.#decided();
  }

  end(callsFollow: boolean): Verdict {
    const verdict = this.#skipPreamble(callsFollow);
    if (verdict) return verdict;
    // No text at all: the rest is calls, or the answer was whole.
    if (this.#answer === '' && this.#begin === this.#preamble)
      return { kind: 'exact', taken: this.#head.length, shown: '' };
    const isOnlyPreamble =
      !callsFollow && preambleOf(this.#answer, true) === this.#answer && this.#answer !== '';
    return isOnlyPreamble ? { rejected: 'no_continuation' } : this.#unanchored(true);
  }

  get #answer(): string {
    return this.#head.slice(this.#begin);
  }

  #anchored(): Verdict | undefined {
    const length = this.#repetition.alignments.at(-1) ?? 0;
    if (length < this.#anchor_characters || length !== this.#answer.length) return undefined;
    return { kind: 'anchored', taken: this.#head.length, shown: this.#shown };
  }

  #decided(): Verdict | undefined {
    const mayStill = this.#answer.length < PLAUSIBLE_CHARACTERS || mayBecomeChatter(this.#answer);
    if (mayStill && this.#head.length < HOLD_CHARACTERS) return undefined;
    if (this.#repetition.isGoingOn && this.#answer !== '') return undefined;
    const before = this.#begin;
    const verdict = this.#skipPreamble(false);
    return verdict ?? (this.#begin === before ? this.#unanchored(false) : undefined);
  }

  /** Reads what comes behind a lead-in as if it came first. */
  #skipPreamble(callsFollow: boolean): Verdict | undefined {
    const preamble = preambleOf(this.#answer, callsFollow);
    if (preamble === '') return undefined;
    const rest = this.#answer.slice(preamble.length);
    this.#begin += preamble.length;
    this.#preamble = this.#begin;
    this.#head = this.#head.slice(0, this.#begin);
    this.#repetition = new Repetition(this.#visible);
    for (const character of rest.split('')) {
      const verdict = this.push(character);
      if (verdict) return verdict;
    }
    return undefined;
  }

  #unanchored(ended: boolean): Verdict {
    const answer = this.#head.slice(this.#preamble);
    if (beginsAgain(this.#repetition.beginning, this.#visible, !this.#lastResort))
      return { rejected: ended ? 'ended_early' : 'diverged' };
    if (!goesOn(this.#delivered, answer)) return { rejected: 'no_continuation' };
    const word = repeatedWord(this.#delivered, answer);
    const isRepeated = word > 0 || this.#preamble > 0 || meantRepetitions(this.#repetition).length > 0;
    if (isRepeated && !this.#lastResort) return { rejected: 'ambiguous' };
    if (word > 0) return { kind: 'aligned', taken: this.#preamble + word, shown: this.#shown };
    const length = singleRepetition(this.#repetition, this.#visible);
    if (length !== undefined) return { kind: 'aligned', taken: this.#begin + length, shown: this.#shown };
    const half = this.#delivered.slice(speakable(this.#delivered).length);
    return { kind: 'unanchored', taken: this.#preamble, shown: half };
  }
}
