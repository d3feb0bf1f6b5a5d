/** Length in UTF-16 units of the longest common beginning. */
export function commonPrefixLength(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}

/** Length of the longest end of `tail` that is also the beginning of `head` and is accepted as an overlap; else 0. */
export function tailOverlap(tail: string, head: string, accepts: (overlap: string) => boolean): number {
  for (let length = Math.min(tail.length, head.length); length > 0; length--) {
    if (tail.endsWith(head.slice(0, length)) && accepts(head.slice(0, length))) return length;
  }
  return 0;
}

/** Rows of dashes, table rules, "hahaha", "0.00, 0.00, ": text that repeats itself overlaps with itself everywhere. */
const PERIOD_CHARACTERS_MAX = 8;

export function isPeriodic(text: string): boolean {
  for (let period = 1; period <= PERIOD_CHARACTERS_MAX && period * 2 <= text.length; period++) {
    if (text.slice(period) === text.slice(0, -period)) return true;
  }
  return false;
}

/** Anything a word cannot go on through. */
export function isSeparator(character: string): boolean {
  return !/[\p{L}\p{N}\p{M}_]/u.test(character);
}
