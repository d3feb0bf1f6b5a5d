/** Controls and separators of lines, and what turns the direction of the text around it: terminals obey them. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Somebody else's words on one line: what a terminal would obey is spelled out. */
export const printable = (text: string): string => text.toWellFormed().replace(CONTROLS, spelled);

/** The same of text that may have several lines. */
export const printableLines = (text: string): string =>
  text.toWellFormed().replace(CONTROLS, (control) => (/[\n\t]/.test(control) ? control : spelled(control)));

const spelled = (control: string): string =>
  `\\u${(control.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
