/** The text without half a surrogate pair at its end, which can't be encoded. */
export function speakable(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

/** The last characters of a text, without half a surrogate pair at either end. */
export const tailOf = (text: string, characters: number): string =>
  speakable(text.slice(-characters).replace(/^[\udc00-\udfff]/, ''));

/** Control characters, line separators and bidirectional controls, which terminals and web pages interpret. */
export const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
