/** A text without the half of a surrogate pair at its end, which cannot be said aloud, nor sent. */
export function speakable(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

/** The last characters of a text, without half a surrogate pair at either end. */
export const tailOf = (text: string, characters: number): string =>
  speakable(text.slice(-characters).replace(/^[\udc00-\udfff]/, ''));
