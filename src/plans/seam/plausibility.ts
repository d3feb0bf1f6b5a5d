/** The start of a sentence: a capital letter before a lower-case one, as in "The", "I am" and "I'm". */
const SENTENCE_START = /^\p{Lu}(?:\p{Ll}|[ '’]\p{Ll})/u;
/** After any of these, a new sentence needs white space first. */
const NEEDS_SPACE = /[\p{Ll}.,;:!?…]$/u;
/** A word with symbols, or with dots or capitals inside: code, a path or an address, where these rules don't hold. */
const CODE_WORD = /[^\s]*(?:[_/\\(){}[\]<>=]|\p{Ll}\p{Lu}|\w\.\w)[^\s]*$/u;

const LAST_LETTERS = /\p{L}+$/u;
/** Bounds the search for the last word in text without spaces. */
const WORD_CHARACTERS_MAX = 64;

/**
 * Whether `head` can follow `delivered`. False only if the two can't be one text: `head` replies to the request to
 * continue, or glues a new sentence to a word.
 */
export function continuesText(delivered: string, head: string): boolean {
  if (isMeta(head.trimStart())) return false;
  const isGlued = SENTENCE_START.test(head) && NEEDS_SPACE.test(delivered);
  return !isGlued || CODE_WORD.test(delivered.slice(-80)) || isInsideFence(delivered);
}

/**
 * Whether `head` proves that the model has read `delivered`: it continues within a word or clause, as no new answer
 * does. Scripts without capital letters prove nothing, nor does a head that repeats the last letters, because that may
 * be the cut word started again.
 */
export function readsOn(delivered: string, head: string): boolean {
  const visible = delivered.trimEnd();
  const letters = LAST_LETTERS.exec(visible.slice(-WORD_CHARACTERS_MAX))?.[0];
  if (letters !== undefined && head.startsWith(letters)) return false;
  return /[\p{Ll}\p{N},]$/u.test(visible) && /^\s?\p{Ll}/u.test(head);
}

const isInsideFence = (text: string): boolean => ((text.match(/^```/gm)?.length ?? 0) & 1) === 1;

/** A match this long with the beginning of the answer is no coincidence. */
const BEGINNING_CHARACTERS = 48;
/** In an answer shorter than this, half of that is enough. */
const SHORT_ANSWER_CHARACTERS = 200;
/** Reason enough to ask again, as long as there is a better way to ask. */
const SUSPICIOUS_CHARACTERS = 12;

/** Whether a continuation that shares `common_characters` with the beginning of the answer starts it again. */
export function beginsAgain(common_characters: number, delivered: string, suspicious: boolean): boolean {
  const certain =
    delivered.length < SHORT_ANSWER_CHARACTERS ? BEGINNING_CHARACTERS / 2 : BEGINNING_CHARACTERS;
  return common_characters >= (suspicious ? SUSPICIOUS_CHARACTERS : certain);
}

/** A longer first line belongs to the answer. */
const PREAMBLE_CHARACTERS = 120;
/** A line of its own, or a lead-in that ends in a colon. Case matters: within a sentence, these words are content. */
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
/** "Of course, there are exceptions:" is content; "Of course, here is the rest:" and a bare "Of course!" aren't. */
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
 * The lead-in of a continuation, such as "Sure, here is the rest:", which replies to the nudge and isn't part of the
 * answer; empty if there is none. A lead-in with nothing after it counts only if `callsFollow`, because the rest is
 * then a tool call.
 */
export function preambleOf(head: string, callsFollow = false): string {
  const line = PREAMBLE.exec(head)?.[0] ?? '';
  const isChatter = line.length <= PREAMBLE_CHARACTERS && (BARE.test(line) || ABOUT_CONTINUING.test(line));
  return isChatter && (line.length < head.length || callsFollow) ? line : '';
}

/** Whether the model replies to the nudge, as in "I don't see a previous message". */
export const isMeta = (head: string): boolean => META.test(head);

/** Whether more text could still turn the head into a lead-in or a reply to the nudge. */
export function mayBecomeChatter(head: string): boolean {
  if (META_OPENERS.some((opener) => opener.startsWith(head))) return true;
  const opens = OPENERS.some((opener) => opener.startsWith(head) || head.startsWith(opener));
  return opens && /^[^:\n]{0,119}(?:[:\n]\s*)?$/.test(head);
}
