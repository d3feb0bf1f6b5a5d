import type { PrefillManner } from './mode.ts';
import { mayBecomeChatter } from './plausibility.ts';
import { Repetition } from './repetition.ts';

/**
 * How the two sides of a seam were joined; the `kind` label of `holdfast_seams_total`. `exact`: the provider continues at the
 * very character, or repeats a known text first. `anchored`: the anchor that the model was asked to repeat was found, and
 * taken off. `aligned`: the one repetition that fits was taken off. `unanchored`: nothing shows where the continuation begins,
 * and it was delivered as it came.
 */
export const SEAM_KINDS = ['exact', 'anchored', 'aligned', 'unanchored'] as const;
export type SeamKind = (typeof SEAM_KINDS)[number];

export type SeamRejection =
  /** The answer is begun again, and then says something else. */
  | 'diverged'
  /** It ended before it came to anything new. */
  | 'ended_early'
  /** It is no part of the answer. */
  | 'no_continuation'
  /** There are several ways to join it, and a better way to ask. */
  | 'ambiguous'
  /** Only a seam that proves itself is allowed. */
  | 'unanchored';

/** What a head turned out to be. */
export type Verdict =
  /** The first `taken` characters are not new. `shown` was delivered behind them, and may come again or not. */
  | {
      readonly kind: SeamKind;
      readonly taken: number;
      readonly shown: string;
      readonly shows?: PrefillManner;
    }
  /** `shows`: what it says about the target, where it leaves no doubt. */
  | { readonly rejected: SeamRejection; readonly shows?: PrefillManner };

/**
 * One way to find where a continuation begins. It reads one character after another, so that the pieces in which text
 * arrives make no difference, and says so as soon as it knows.
 */
export interface Joint {
  push(character: string): Verdict | undefined;
  /** No more text comes. `callsFollow`: the rest is, or continues with, tool calls. */
  end(callsFollow: boolean): Verdict;
}

/** From less of it nothing can be said. */
const PLAUSIBLE_CHARACTERS = 2;
/** Blanks and lead-ins in front of it are waited for so long. */
const HOLD_CHARACTERS = 400;

/** The head of a continuation, as far as it has come: blanks, or what was passed over, and the answer behind them. */
export class Head {
  /** Follows where the answer says again what was delivered. */
  readonly repetition: Repetition;
  #text: string;
  #begin: number;

  /** `delivered`: what can be repeated. `passed`: what has come and is no part of the answer. */
  constructor(delivered: string, passed = '') {
    this.repetition = new Repetition(delivered);
    this.#text = passed;
    this.#begin = passed.length;
  }

  get text(): string {
    return this.#text;
  }

  /** Where in {@link text} the answer begins. */
  get begin(): number {
    return this.#begin;
  }

  get answer(): string {
    return this.#text.slice(this.#begin);
  }

  push(character: string): void {
    const isBlank = this.#begin === this.#text.length && character.trim() === '';
    this.#text += character;
    if (isBlank) this.#begin++;
    else if (this.repetition.isGoingOn) this.repetition.push(character);
  }

  /** More text may still show what it is, and is worth waiting for. */
  get isUndecided(): boolean {
    const { answer } = this;
    const mayStill = answer.length < PLAUSIBLE_CHARACTERS || mayBecomeChatter(answer);
    if (mayStill && this.#text.length < HOLD_CHARACTERS) return true;
    return this.repetition.isGoingOn && answer !== '';
  }
}
