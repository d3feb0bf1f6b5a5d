import { crc32 } from 'node:zlib';

/* Everything is stored as lines: `<crc32 of the rest, 8 hex digits> <JSON>\n`. */

const NEWLINE = 0x0a;
const SPACE = 0x20;
const CHECKSUM_DIGITS = 8;
/** The value of each byte as a hexadecimal digit; more than 15 if it isn't one. */
const HEX_VALUES = Uint8Array.from(
  { length: 256 },
  (_, byte) => '0123456789abcdef'.indexOf(String.fromCharCode(byte)) & 31,
);

/** The decoded value, or why it can't be trusted. */
export type Decoded<T> = { readonly value: T } | { readonly reason: string };

/** A line with its checksum and newline. `body` must be JSON without line breaks. */
export const checkedLine = (body: string): string => `${checksumOf(body)} ${body}\n`;

/** The unparsed body of a checked line (with or without its newline), or why it can't be trusted. */
export function bodyOf(line: string | Uint8Array): Decoded<Buffer> {
  // The checksum covers the bytes as read: decoding damaged UTF-8 and encoding it again can change them.
  const bytes = typeof line === 'string' ? Buffer.from(line) : line;
  const end = bytes.at(-1) === NEWLINE ? bytes.length - 1 : bytes.length;
  const start = CHECKSUM_DIGITS + 1;
  if (end <= start) return { reason: 'truncated line' };
  if (!isIntact(bytes, 0, end)) return { reason: 'checksum mismatch' };
  return { value: Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start) };
}

/** Whether the checked line in the bytes from `start` to `end`, newline excluded, has the right checksum. */
export function isIntact(bytes: Uint8Array, start: number, end: number): boolean {
  const body_start = start + CHECKSUM_DIGITS + 1;
  if (body_start >= end || bytes[body_start - 1] !== SPACE) return false;
  const body = new Uint8Array(bytes.buffer, bytes.byteOffset + body_start, end - body_start);
  return checksumAt(bytes, start) === crc32(body);
}

/**
 * The parsed JSON of a stored body; undefined if it is invalid. Not subject to the limits of `parsedJson`, because runs
 * can be larger than requests.
 */
export function parsedBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The checksum of the line that begins at `start`; undefined if there is none. */
function checksumAt(bytes: Uint8Array, start: number): number | undefined {
  let sum = 0;
  for (let at = start; at < start + CHECKSUM_DIGITS; at++) {
    const digit = HEX_VALUES[bytes[at] as number] as number;
    if (digit > 15) return undefined;
    sum = sum * 16 + digit;
  }
  return sum;
}

/** `Number.prototype.toString(16)` and padding would cost more than the rest of encoding a line. */
const HEX_BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const hexByte = (word: number, shift: number): string => HEX_BYTES[(word >>> shift) & 0xff] as string;

function checksumOf(body: string | Uint8Array): string {
  const sum = crc32(body);
  return hexByte(sum, 24) + hexByte(sum, 16) + hexByte(sum, 8) + hexByte(sum, 0);
}
