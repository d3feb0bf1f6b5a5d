import { isMeta } from './chatter.ts';

/** From less of it nothing can be said. */
export const PLAUSIBLE_CHARACTERS = 2;
/** Blanks and lead-ins in front of it are waited for so long. */
export const HOLD_CHARACTERS = 400;
/** The beginning of a sentence: a capital letter within a word that is not all capitals. */
const SENTENCE_START = /^\p{Lu}(?:\p{Ll}|[ '’]\p{Ll})/u;
/** After these a sentence begins only behind white space: the end of a word, of a clause or of a sentence. */
const NEEDS_SPACE = /[\p{Ll}.,;:!?…]$/u;
/** A name with dots, slashes or capitals within it is code, a path or an address, where none of this holds. */
const CODE_WORD = /[^\s]*(?:[_/\\(){}[\]<>=]|\p{Ll}\p{Lu}|\w\.\w)[^\s]*$/u;

const LAST_LETTERS = /\p{L}+$/u;
/** No word is longer, and an answer without spaces may be. */
const WORD_CHARACTERS_MAX = 64;

/**
 * Whether `head` could be what follows `delivered`. Said no only where the two cannot be one text: an answer to the
 * request to go on, or a new sentence glued to a word.
 */
export function goesOn(delivered: string, head: string): boolean {
  if (isMeta(head.trimStart())) return false;
  const isGlued = SENTENCE_START.test(head) && NEEDS_SPACE.test(delivered);
  return !isGlued || CODE_WORD.test(delivered.slice(-80)) || isInsideFence(delivered);
}

/**
 * Whether `head` shows that its author had read `delivered`: it continues within a word or a clause, which no answer that
 * is begun anew does. Scripts without capital letters show nothing, and the letters that were delivered last may be the
 * word that was cut, begun again.
 */
export function readsOn(delivered: string, head: string): boolean {
  const visible = delivered.trimEnd();
  const letters = LAST_LETTERS.exec(visible.slice(-WORD_CHARACTERS_MAX))?.[0];
  if (letters !== undefined && head.startsWith(letters)) return false;
  return /[\p{Ll}\p{N},]$/u.test(visible) && /^\s?\p{Ll}/u.test(head);
}

const isInsideFence = (text: string): boolean => ((text.match(/^```/gm)?.length ?? 0) & 1) === 1;
