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
 * "Sure, here is the rest:" — spoken to whoever asked for the rest, and no part of it; empty if there is none. On its
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
