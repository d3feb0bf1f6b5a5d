/** A text without the half of a surrogate pair at its end, which cannot be said aloud, nor sent. */
export function speakable(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

/** The last characters of a text, without half a surrogate pair at either end. */
export const tailOf = (text: string, characters: number): string =>
  speakable(text.slice(-characters).replace(/^[\udc00-\udfff]/, ''));

/** Controls and separators of lines, and what turns the direction of the text around it: terminals and pages obey them. */
export const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
