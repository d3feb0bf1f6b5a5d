import type { Joint, SeamRejection, Verdict } from './joint.ts';

export interface Known {
  /** What is said again first, as far as it is known. */
  readonly text: string;
  /** Delivered behind it: may be said again or not. */
  readonly shown: string;
  /** White space in front of it is the provider's. */
  readonly mayBeginBlank: boolean;
  /** What it means when something else comes: that the attempt cannot be joined, or that all of it is new. */
  readonly otherwise: SeamRejection | 'new';
  /** The answer may end so far before the end of {@link text}. */
  readonly slack: number;
}

/** For continuations that first repeat a known text: an echo of the prefix, a replay of the whole answer. */
export class KnownJoint implements Joint {
  readonly #known: Known;
  #taken = 0;
  #said = 0;

  constructor(known: Known) {
    this.#known = known;
  }

  push(character: string): Verdict | undefined {
    const { text, shown, mayBeginBlank, otherwise } = this.#known;
    if (this.#said === 0 && mayBeginBlank && character.trim() === '' && text.charAt(0) !== character) {
      this.#taken++;
      return undefined;
    }
    if (text.charAt(this.#said) !== character)
      return otherwise === 'new' ? { kind: 'exact', taken: this.#taken, shown: '' } : { rejected: otherwise };
    this.#taken++;
    this.#said++;
    return this.#said === text.length ? { kind: 'exact', taken: this.#taken, shown } : undefined;
  }

  end(): Verdict {
    const { text, otherwise, slack } = this.#known;
    const isComplete = otherwise === 'new' || this.#said >= text.length - slack;
    return isComplete ? { kind: 'exact', taken: this.#taken, shown: '' } : { rejected: 'ended_early' };
  }
}
