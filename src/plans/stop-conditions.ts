import { tokensIn } from './tokens.ts';

/**
 * Finds stop sequences that begin in the text delivered before a seam and end after it. The provider of the
 * continuation cannot see those; the ones that begin after the seam it finds itself.
 */
export class StopMatcher {
  readonly #stops: readonly string[];
  readonly #before: string;
  #held = '';
  #watching: boolean;
  #matched: string | undefined;

  constructor(stops: readonly string[], delivered: string) {
    this.#stops = stops;
    const longest = Math.max(0, ...stops.map((stop) => stop.length));
    this.#before = delivered.slice(Math.max(0, delivered.length - longest + 1));
    this.#watching = this.#before !== '';
  }

  /** The sequence that ended the answer. */
  get matched(): string | undefined {
    return this.#matched;
  }

  /** `emit` is safe to deliver; once `stopped`, the answer is over. */
  push(text: string): { readonly emit: string; readonly stopped: boolean } {
    if (!this.#watching) return { emit: text, stopped: false };
    const after = this.#held + text;
    let undecided = false;
    for (const stop of this.#stops) {
      const earliest = Math.max(0, this.#before.length - stop.length + 1);
      for (let start = earliest; start < this.#before.length; start++) {
        const candidate = this.#before.slice(start) + after;
        if (candidate.startsWith(stop)) {
          this.#matched = stop;
          return { emit: '', stopped: true };
        }
        if (stop.startsWith(candidate)) undecided = true;
      }
    }
    this.#held = undecided ? after : '';
    this.#watching = undecided;
    return { emit: undecided ? '' : after, stopped: false };
  }

  /** What was held back because it could have been the beginning of a stop sequence, when nothing follows it. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    this.#watching = false;
    return held;
  }
}

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
    return tokensIn({ deltas, characters: this.#shown_characters }) >= this.#tokens;
  }
}
