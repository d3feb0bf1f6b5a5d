/**
 * A model name in which `*` stands for any characters. Not a regular expression, because several stars could take time
 * exponential in the length of the name, which clients choose.
 */
export class ModelPattern {
  readonly #first: string;
  readonly #between: readonly string[];
  /** `undefined` without a star. */
  readonly #last: string | undefined;

  constructor(pattern: string) {
    const [first = '', ...rest] = pattern.split('*');
    this.#first = first;
    this.#last = rest.pop();
    this.#between = rest;
  }

  matches(model: string): boolean {
    if (this.#last === undefined) return model === this.#first;
    const end = model.length - this.#last.length;
    let from = this.#first.length;
    if (end < from || !model.startsWith(this.#first) || !model.endsWith(this.#last)) return false;
    for (const piece of this.#between) {
      const found = model.indexOf(piece, from);
      if (found === -1) return false;
      from = found + piece.length;
    }
    return from <= end;
  }
}
