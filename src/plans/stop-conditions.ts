import { tokensIn } from './tokens.ts';

/**
 * Finds stop sequences that begin before a seam and end after it. The provider of the continuation can't see those; it
 * finds the ones after the seam itself.
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

  /** Releases held-back text once the text is complete. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    this.#watching = false;
    return held;
  }
}

/**
 * Enforces the client's token limit on an attempt whose request allows more. Such a request asks the model to repeat an
 * anchor; a model that ignores this would exceed the limit by that many tokens.
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

  /** A seam merges held-back deltas into one text, so the deltas are apportioned by characters. */
  get isReached(): boolean {
    if (this.#arrived_characters === 0) return false;
    const deltas = Math.round((this.#deltas * this.#shown_characters) / this.#arrived_characters);
    return tokensIn({ deltas, characters: this.#shown_characters }) >= this.#tokens;
  }
}
