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

/** Shorter repetitions are coincidences: half a word, the name of a key. */
const MEANT_CHARACTERS = 12;
/** So little text is repeated by chance in every other sentence. */
const COINCIDENCE = /^(?:.|[\p{Script=Latin} ]{2,3})$/su;
const WORD = /\p{Ll}{3,}$/u;

/** Repetitions long enough to be meant: `alignments` that are no coincidence. */
export const meantRepetitions = ({ alignments }: Repetition): readonly number[] =>
  alignments.filter((length) => length >= MEANT_CHARACTERS);

/**
 * The length of the repetition that may be taken off: the only one there is, of text that stands nowhere else in what
 * was delivered. Where text repeats itself by nature, what looks like a repetition may as well be new.
 */
export function singleRepetition(repetition: Repetition, delivered: string): number | undefined {
  const candidates = repetition.alignments.filter((each) => !COINCIDENCE.test(delivered.slice(-each)));
  const [length, ...others] = candidates;
  if (length === undefined || others.length > 0 || length < MEANT_CHARACTERS) return undefined;
  return endsUniquely(delivered, length) && !repeatsItself(delivered) ? length : undefined;
}

/**
 * The length of the word within or behind which the answer was cut and with which the continuation begins: 0 unless the
 * word stands nowhere else in what was delivered.
 */
export function repeatedWord(delivered: string, head: string): number {
  const word = WORD.exec(delivered.slice(-64))?.[0] ?? '';
  const isOnlyOne = word !== '' && endsUniquely(delivered, word.length);
  return isOnlyOne && head.startsWith(word) ? word.length : 0;
}

/** True if the last `length` characters of `text` stand nowhere else in it. */
export function endsUniquely(text: string, length: number): boolean {
  return text.indexOf(text.slice(text.length - length)) === text.length - length;
}

/** The end of a long answer says enough about it. */
const WINDOW_CHARACTERS = 4000;
/** In prose so much text hardly ever stands twice; in rows, code and verse it does. */
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
