import { endsUniquely, type Repetition } from './repetition.ts';

/** Shorter repetitions are coincidences: half a word, the name of a key. */
const CHARACTERS = 12;
/** So little text is repeated by chance in every other sentence. */
const COINCIDENCE = /^(?:.|[\p{Script=Latin} ]{2,3})$/su;
const WORD = /\p{Ll}{3,}$/u;

/** Repetitions long enough to be meant: `alignments` that are no coincidence. */
export const meantRepetitions = ({ alignments }: Repetition): readonly number[] =>
  alignments.filter((length) => length >= CHARACTERS);

/**
 * The length of the repetition that may be taken off: the only one there is, of text that stands nowhere else in what
 * was delivered. Where text repeats itself by nature, what looks like a repetition may as well be new.
 */
export function singleRepetition(repetition: Repetition, delivered: string): number | undefined {
  const candidates = repetition.alignments.filter((each) => !COINCIDENCE.test(delivered.slice(-each)));
  const [length, ...others] = candidates;
  if (length === undefined || others.length > 0 || length < CHARACTERS) return undefined;
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
