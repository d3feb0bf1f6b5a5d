/** Used until an answer has arrived whole. */
export const ASSUMED_CHARACTERS = 400;
const ANSWERS_MAX = 15;

/** The median length of the latest answers that arrived whole. */
export class TypicalLength {
  readonly #lengths: number[] = [];

  get characters(): number {
    const sorted = this.#lengths.toSorted((one, other) => one - other);
    return sorted[Math.floor(sorted.length / 2)] ?? ASSUMED_CHARACTERS;
  }

  add(characters: number): void {
    this.#lengths.push(characters);
    if (this.#lengths.length > ANSWERS_MAX) this.#lengths.shift();
  }
}
