/** A repetition that starts further back than this is found only if it starts at the beginning of the answer. */
const REACH_CHARACTERS = 8000;

/**
 * Tracks, character by character, where a text repeats what was delivered. An alignment is a length at which the text
 * so far equals the end of what was delivered, so that the next character may be new.
 */
export class Repetition {
  readonly #delivered: string;
  #said = 0;
  #beginning = 0;
  /** The positions in `delivered` at which the text so far occurs; `undefined` before the first character. */
  #places: number[] | undefined;
  readonly #alignments: number[] = [];

  constructor(delivered: string) {
    this.#delivered = delivered;
  }

  /** In ascending order. */
  get alignments(): readonly number[] {
    return this.#alignments;
  }

  /** Length of the match with the beginning of what was delivered. */
  get beginning(): number {
    return this.#beginning;
  }

  /** Everything so far was delivered before, so only the next character shows whether the repetition ends here. */
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

/** Shorter repetitions are coincidences: half a word, the name of a key. */
const MEANT_CHARACTERS = 12;
/** Text this short is repeated by chance in every other sentence. */
const COINCIDENCE = /^(?:.|[\p{Script=Latin} ]{2,3})$/su;
const WORD = /\p{Ll}{3,}$/u;

/** Alignments too long to be a coincidence. */
export const meantRepetitions = ({ alignments }: Repetition): readonly number[] =>
  alignments.filter((length) => length >= MEANT_CHARACTERS);

/**
 * The length of the repetition that can safely be removed: it's the only one, and its text occurs nowhere else in what
 * was delivered. `undefined` if there is any doubt; in text that repeats itself by nature, an apparent repetition may
 * be new.
 */
export function singleRepetition(repetition: Repetition, delivered: string): number | undefined {
  const candidates = repetition.alignments.filter((each) => !COINCIDENCE.test(delivered.slice(-each)));
  const [length, ...others] = candidates;
  if (length === undefined || others.length > 0 || length < MEANT_CHARACTERS) return undefined;
  return endsUniquely(delivered, length) && !repeatsItself(delivered) ? length : undefined;
}

/**
 * The length of the last delivered word, complete or cut, if the continuation begins with it; 0 if it doesn't, or if
 * the word occurs more than once in what was delivered.
 */
export function repeatedWord(delivered: string, head: string): number {
  const word = WORD.exec(delivered.slice(-64))?.[0] ?? '';
  const isOnlyOne = word !== '' && endsUniquely(delivered, word.length);
  return isOnlyOne && head.startsWith(word) ? word.length : 0;
}

/** True if the last `length` characters of `text` occur nowhere else in it. */
export function endsUniquely(text: string, length: number): boolean {
  return text.indexOf(text.slice(text.length - length)) === text.length - length;
}

/** The end of a long answer is enough to judge it by. */
const WINDOW_CHARACTERS = 4000;
/** Prose hardly ever contains this much text twice; tables, code and verse do. */
const PIECE_CHARACTERS = 20;

function repeatsItself(text: string): boolean {
  const window = text.slice(-WINDOW_CHARACTERS);
  const seen = new Set<string>();
  for (let start = 0; start + PIECE_CHARACTERS <= window.length; start++) {
    const piece = window.slice(start, start + PIECE_CHARACTERS);
    if (seen.has(piece)) return true;
    seen.add(piece);
  }
  return false;
}

/** Length in UTF-16 units of the longest common beginning. */
export function commonPrefixLength(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}
