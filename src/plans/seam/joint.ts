import type { PrefillManner } from './mode.ts';
import { mayBecomeChatter } from './plausibility.ts';
import { Repetition } from './repetition.ts';

/**
 * How the two sides of a seam were joined; the `kind` label of `holdfast_seams_total`.
 * - `exact`: the provider continued at the exact character, or first repeated a known text.
 * - `anchored`: the continuation repeated the anchor as requested, and the anchor was removed.
 * - `aligned`: the only repetition that fits was removed.
 * - `unanchored`: nothing shows where the continuation starts, so nothing was removed as a repetition.
 */
export const SEAM_KINDS = ['exact', 'anchored', 'aligned', 'unanchored'] as const;
export type SeamKind = (typeof SEAM_KINDS)[number];

export type SeamRejection =
  /** It starts the answer again, then differs from it. */
  | 'diverged'
  /** It ended before it produced anything new. */
  | 'ended_early'
  /** It doesn't belong to the answer. */
  | 'no_continuation'
  /** It can be joined in more than one way, and there is a better way to ask. */
  | 'ambiguous'
  /** The seam isn't proven, and only proven seams are allowed. */
  | 'unanchored';

/** The decision about the head of a continuation. */
export type Verdict =
  /** The first `taken` characters aren't new. `shown` was delivered after them and may or may not be repeated. */
  | {
      readonly kind: SeamKind;
      readonly taken: number;
      readonly shown: string;
      readonly shows?: PrefillManner;
    }
  /** `shows`: how the target treats a prefix, if the head leaves no doubt. */
  | { readonly rejected: SeamRejection; readonly shows?: PrefillManner };

/**
 * A strategy for finding where a continuation starts. It reads single characters, so that the chunking of the text
 * makes no difference, and decides as early as it can.
 */
export interface Joint {
  push(character: string): Verdict | undefined;
  /** Decides when no more text will come. `callsFollow`: tool calls come next. */
  end(callsFollow: boolean): Verdict;
}

/** Minimum length of an answer that can be judged. */
const PLAUSIBLE_CHARACTERS = 2;
/** Maximum text held back while it may still be blanks or a lead-in. */
const HOLD_CHARACTERS = 400;

/** The head of a continuation so far: blanks or other skipped text, then the answer. */
export class Head {
  /** Tracks where the answer repeats the delivered text. */
  readonly repetition: Repetition;
  #text: string;
  #begin: number;

  /** `delivered`: the text that can be repeated. `passed`: text already read that isn't part of the answer. */
  constructor(delivered: string, passed = '') {
    this.repetition = new Repetition(delivered);
    this.#text = passed;
    this.#begin = passed.length;
  }

  get text(): string {
    return this.#text;
  }

  /** Offset of the answer in {@link text}. */
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

  /** More text may still show what this is. */
  get isUndecided(): boolean {
    const { answer } = this;
    const mayStill = answer.length < PLAUSIBLE_CHARACTERS || mayBecomeChatter(answer);
    if (mayStill && this.#text.length < HOLD_CHARACTERS) return true;
    return this.repetition.isGoingOn && answer !== '';
  }
}
