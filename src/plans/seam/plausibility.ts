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
 * Whether `head` could be what follows `delivered`. False only where the two cannot be one text: an answer to the
 * request to continue, or a new sentence glued to a word.
 */
export function continuesText(delivered: string, head: string): boolean {
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

/** As long a common beginning with the answer's own is no coincidence … */
const BEGINNING_CHARACTERS = 48;
/** … in an answer shorter than this, already half as much. */
const SHORT_ANSWER_CHARACTERS = 200;
/** So much of it is reason enough to ask again, as long as there is a better way to ask. */
const SUSPICIOUS_CHARACTERS = 12;

/** Whether a continuation with so many characters in common with the beginning of the answer begins it again. */
export function beginsAgain(common_characters: number, delivered: string, suspicious: boolean): boolean {
  const certain =
    delivered.length < SHORT_ANSWER_CHARACTERS ? BEGINNING_CHARACTERS / 2 : BEGINNING_CHARACTERS;
  return common_characters >= (suspicious ? SUSPICIOUS_CHARACTERS : certain);
}

/** Longer first lines are the answer's own. */
const PREAMBLE_CHARACTERS = 120;
/** A line of its own, or a lead-in that ends in a colon. Capital letters: within a sentence these are the answer. */
const PREAMBLE =
  /^(?:Sure|Certainly|Of course|Okay|OK|Ok|Apologies|Continu(?:ing|ed)|Picking up|\[[Cc]ontinu(?:ing|ed)|Here(?:'|’| i)s the (?:rest|continuation))\b(?:[^\n:]{0,100}:(?: *\n| +)|[^\n:]{0,118}\n)/;
const OPENERS = [
  'Sure',
  'Certainly',
  'Of course',
  'OK',
  'Ok',
  'Apologies',
  'Continu',
  'Picking up',
  '[Continu',
  '[continu',
  "Here's the",
  'Here’s the',
  'Here is the',
];
/** "Of course, there are exceptions:" is the answer; "Of course, here is the rest:" and a bare "Of course!" are not. */
const BARE = /^(?:Sure|Certainly|Of course|Okay|OK|Ok|Apologies)[ .,!…]*:?\s*$/;
const ABOUT_CONTINUING =
  /\b(?:rest|continu|(?:left|cut|broke) off|interrupt|pick(?:ing|ed)? up|go(?:ing)? on|resum|repeat)/i;

/** The model answers the nudge instead of the user. */
const META =
  /^(?:I(?:'|’| a)m sorry, (?:but )?I|I (?:don't|don’t|do not) see|There is no previous|As an AI\b)/;
const META_OPENERS = [
  "I'm sorry, but I",
  'I’m sorry, but I',
  'I am sorry, but I',
  "I don't see",
  'I don’t see',
  'I do not see',
  'There is no previous',
  'As an AI',
];

/**
 * "Sure, here is the rest:" — addressed to the user who asked for the rest, and no part of it; empty if there is none. On its
 * own it is all the model said, unless `callsFollow`: then the rest is a tool call.
 */
export function preambleOf(head: string, callsFollow = false): string {
  const line = PREAMBLE.exec(head)?.[0] ?? '';
  const isChatter = line.length <= PREAMBLE_CHARACTERS && (BARE.test(line) || ABOUT_CONTINUING.test(line));
  return isChatter && (line.length < head.length || callsFollow) ? line : '';
}

/** "I don't see a previous message": nothing of this belongs to the answer. */
export const isMeta = (head: string): boolean => META.test(head);

/** More text could still turn the head into one of the two. */
export function mayBecomeChatter(head: string): boolean {
  if (META_OPENERS.some((opener) => opener.startsWith(head))) return true;
  const opens = OPENERS.some((opener) => opener.startsWith(head) || head.startsWith(opener));
  return opens && /^[^:\n]{0,119}(?:[:\n]\s*)?$/.test(head);
}
