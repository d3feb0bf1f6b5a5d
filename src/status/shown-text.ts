/** Controls and separators of lines, and what turns the direction of the text around it: terminals and pages obey them. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Somebody else's words as they may be shown: on one line, and at most `characters_max` long. */
export function shownText(text: string, characters_max: number): string {
  const short = text.length > characters_max ? `${text.slice(0, characters_max - 1)}…` : text;
  return short.toWellFormed().replace(CONTROLS, '\ufffd');
}
