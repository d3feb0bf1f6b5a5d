import type { Joint, Verdict } from './joint.ts';
import type { Prefix } from './mode.ts';
import { beginsAgain } from './plausibility.ts';

/**
 * For targets that continue a prefix exactly, but only according to their dialect. A gateway in front of the model may
 * drop the field that requests this; the model then starts a new answer, and the client would see everything twice. So
 * a continuation that repeats the beginning of the answer is rejected and requested in another way, unless that
 * beginning occurs elsewhere in the answer too.
 */
export class ClaimedJoint implements Joint {
  /** Leading blanks aren't compared, because a new answer may start with different ones. */
  readonly #visible: string;
  readonly #continues: Verdict;
  #same = 0;

  constructor({ sent, trimmed }: Prefix) {
    this.#visible = sent.trimStart();
    this.#continues = { kind: 'exact', taken: 0, shown: trimmed };
  }

  push(character: string): Verdict | undefined {
    if (this.#same === 0 && character.trim() === '') return undefined;
    if (this.#visible.charAt(this.#same) !== character) return this.#continues;
    this.#same++;
    const isWhole = this.#same === this.#visible.length;
    if (!beginsAgain(this.#same, this.#visible, isWhole)) return undefined;
    const isUnique = this.#visible.indexOf(this.#visible.slice(0, this.#same), 1) === -1;
    return isUnique ? { rejected: 'ambiguous' } : this.#continues;
  }

  end(): Verdict {
    return this.#continues;
  }
}
