/* Decimal digits in bytes. Decoding them to a string first costs several times as much. */

const ZERO = 0x30;
const NINE = 0x39;

/** Where the digits that begin at `start` end, at most `end`. */
export function endOfDigits(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at++;
  return at;
}

/** The value of the digits from `start` to `end`, exact if it is a safe integer. */
export function numberOfDigits(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + (bytes[at] as number) - ZERO;
  return value;
}
