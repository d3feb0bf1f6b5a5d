/** Length in UTF-16 units of the longest common beginning. */
export function commonPrefixLength(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}

/** The longest end of `tail` that is also the beginning of `head`. */
export function tailOverlap(tail: string, head: string): string {
  let length = Math.min(tail.length, head.length);
  while (!tail.endsWith(head.slice(0, length))) length--;
  return head.slice(0, length);
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
