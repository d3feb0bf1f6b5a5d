import type { PrefillManner } from '../../../plans/seam/mode.ts';

/** From less text it could not be told how two answers compare. */
const COMPARED_CHARACTERS = 16;

/**
 * The head of a continuation that could be joined in more than one way. Once the rest of the answer is known, got by a
 * nudge whose anchor was found, it shows what the target had made of the prefix.
 */
export class PrefillDoubt {
  readonly #head: string;
  readonly #delivered: string;

  constructor(head: string, delivered: string) {
    this.#head = head.trimStart();
    this.#delivered = delivered;
  }

  /** `text`: the answer as it is known now. */
  resolve(text: string): PrefillManner | undefined {
    const said = (from: number) => this.#isAt(text.slice(from).trimStart());
    const isExact = said(this.#delivered.length);
    const isRepeated = said(0);
    if (isExact === isRepeated) return undefined;
    // An echo looks like an answer begun anew, which is far more frequent, and a nudge costs less than that.
    return isExact ? 'exact' : 'new_turn';
  }

  #isAt(text: string): boolean {
    const length = Math.min(text.length, this.#head.length);
    return length >= COMPARED_CHARACTERS && text.slice(0, length) === this.#head.slice(0, length);
  }
}
