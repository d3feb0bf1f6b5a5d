/** A repetition that reaches further back than this is known only if it begins where the answer does. */
const REACH_CHARACTERS = 8000;

/**
 * Follows, character by character, where a text says again what was delivered. An alignment is a length at which the
 * text has come, saying only what was delivered, to the end of it: what follows could be new.
 */
export class Repetition {
  readonly #delivered: string;
  #said = 0;
  #beginning = 0;
  /** Where in `delivered` the text may stand so far; `undefined` before its first character. */
  #places: number[] | undefined;
  readonly #alignments: number[] = [];

  constructor(delivered: string) {
    this.#delivered = delivered;
  }

  /** Lengths of the text that are an end of what was delivered, shortest first. */
  get alignments(): readonly number[] {
    return this.#alignments;
  }

  /** How much of the answer's beginning the text has said again, from the answer's first character on. */
  get beginning(): number {
    return this.#beginning;
  }

  /** Everything said so far was delivered: only the next character shows whether it ends here. */
  get isGoingOn(): boolean {
    return this.#places === undefined || this.#places.length > 0 || this.#alignments.at(-1) === this.#said;
  }

  push(character: string): void {
    const delivered = this.#delivered;
    this.#places = (this.#places ?? this.#allPlaces()).filter(
      (place) => delivered.charAt(place + this.#said) === character,
    );
    this.#said++;
    if (this.#places[0] === 0) this.#beginning = this.#said;
    const end = delivered.length - this.#said;
    const aligned = this.#places.indexOf(end);
    if (aligned === -1) return;
    this.#alignments.push(this.#said);
    this.#places.splice(aligned, 1);
  }

  #allPlaces(): number[] {
    const { length } = this.#delivered;
    const first = Math.max(0, length - REACH_CHARACTERS);
    const places = Array.from({ length: length - first }, (_, index) => first + index);
    return first > 0 ? [0, ...places] : places;
  }
}

/** True if the last `length` characters of `text` stand nowhere else in it. */
export function endsUniquely(text: string, length: number): boolean {
  return text.indexOf(text.slice(text.length - length)) === text.length - length;
}
