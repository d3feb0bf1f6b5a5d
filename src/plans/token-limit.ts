import { tokensOfDeltas } from './tokens.ts';

/**
 * What the client has left of its limit, for an attempt whose request allows more: it asks the model to repeat an anchor,
 * and a model that does not would say as many tokens more than the client asked for.
 */
export class TokenLimit {
  readonly #tokens: number;
  #deltas = 0;
  #arrived_characters = 0;
  #shown_characters = 0;

  constructor(tokens: number) {
    this.#tokens = tokens;
  }

  arrive(characters: number): void {
    this.#deltas++;
    this.#arrived_characters += characters;
  }

  show(characters: number): void {
    this.#shown_characters += characters;
  }

  /** A seam joins what it held back into one text, so deltas are shared out by characters. */
  get isReached(): boolean {
    if (this.#arrived_characters === 0) return false;
    const deltas = Math.round((this.#deltas * this.#shown_characters) / this.#arrived_characters);
    return tokensOfDeltas(deltas, this.#shown_characters) >= this.#tokens;
  }
}
