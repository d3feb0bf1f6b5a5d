import type { Joint, Verdict } from './joint.ts';
import type { Prefix } from './mode.ts';
import { beginsAgain } from './plausibility.ts';

/**
 * For targets that continue a prefix exactly according to their dialect alone. A gateway in front of the model may drop the
 * field that asks for this; the model then answers anew, and everything delivered would be shown twice. So a continuation
 * that repeats the beginning of the answer is asked for in another way, unless the answer repeats its beginning anyway.
 */
export class ClaimedJoint implements Joint {
  /** Blanks in front of the answer are not compared: models begin with other blanks when they answer anew. */
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
