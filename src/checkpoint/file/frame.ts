import { crc32 } from 'node:zlib';
import { endOfDigits, numberOfDigits } from '../../lib/decimal.ts';
import { checkedLine, isIntact } from '../checked-line.ts';

/*
 * A segment of the log consists of lines: `<crc32 of the rest> <length> <kind> <subject> <number> <body>\n`. The length
 * counts the bytes from there to the newline. It distinguishes a line that a killed process left unfinished, which was
 * never reported as stored, from a line that was damaged later. Every write begins with an empty line, which terminates
 * whatever an earlier write left unfinished.
 */

/** Format version, stated at the start of every segment. */
export const VERSION = 3;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const CHECKSUM_DIGITS = 8;
const LENGTH_START = CHECKSUM_DIGITS + 1;
const LENGTH_DIGITS_MAX = 9;
/** The kind and a space. */
const KIND_WIDTH = 2;
const HEAD_BYTES_MAX = LENGTH_START + LENGTH_DIGITS_MAX + 1 + KIND_WIDTH;
/** The longest subject is the digest of a note. */
const SUBJECT_BYTES_MAX = 64;
/** A line that was cut off before or inside its length. */
const CUT_HEAD = /^[\da-f]{0,8}$|^[\da-f]{8} \d{0,9}$/;
/** The number of wrong bytes with which a subject is still recognised. */
const SUBJECT_ERRORS_MAX = 2;

/**
 * Kinds of frames, each with its subject, number and body:
 *
 *   h  header, `-`, ms since 1970: the version; the time applies to the frames that follow
 *   s  segment closed, `-`, 0; frames after it don't count
 *   c  claim of an epoch, run, epoch: `<owner> <holder or -> <base> <1 or 0> <proof>`, 1 if everything after the base
 *      is discarded
 *   r  record, run, epoch: JSON of the record
 *   z  end, run, epoch: JSON of the end with the number of the last event and a proof
 *   i  entry in the owner's index, run, 0: the entry
 *   f  index entry removed, run, 0
 *   p  run purged, run, 0
 *   m  run copied, run, ms of its last append: `<where its last line ends> <bytes of its lines>`; the lines follow in
 *      the same write and replace the earlier ones
 *   n  note, digest, ms when it expires: `<put, claim or copy> <nonce or place> <ms when it was written> <place of the
 *      note that may be replaced or -> <JSON of the text>`
 *   t  note taken, digest, ms when it was taken: a nonce
 */
export type FrameKind = 'h' | 's' | 'c' | 'r' | 'z' | 'i' | 'f' | 'p' | 'm' | 'n' | 't';

export interface Frame {
  readonly kind: FrameKind;
  readonly subject: string;
  readonly number: number;
  /** Offsets within the parsed bytes. */
  readonly body_start: number;
  readonly body_end: number;
}

/** Position of a line in the log, without its newline. */
export interface Place {
  readonly segment: number;
  readonly offset: number;
  readonly bytes: number;
}

/** The place in the form that {@link SegmentLog.read} takes. */
export const numbersOf = ({ segment, offset, bytes }: Place): [number, number, number] => [
  segment,
  offset,
  bytes,
];

export function encodeFrame(kind: FrameKind, subject: string, number: number, body: string): string {
  const rest = `${kind} ${subject} ${number} ${body}`;
  return checkedLine(`${Buffer.byteLength(rest)} ${rest}`);
}

/** The frame in the bytes from `start` to `end`, newline excluded; undefined if it isn't a valid frame. */
export function decodeFrame(bytes: Buffer, start: number, end: number): Frame | undefined {
  const head = headOf(bytes, start, end);
  if (head?.length !== end - (head?.rest_start ?? 0) || !isIntact(bytes, start, end)) return undefined;
  const subject_start = head.rest_start + KIND_WIDTH;
  let subject_end = subject_start;
  while (subject_end < end && bytes[subject_end] !== SPACE) subject_end++;
  const number_end = endOfDigits(bytes, subject_end + 1, end);
  if (number_end === subject_end + 1 || number_end >= end || bytes[number_end] !== SPACE) return undefined;
  return {
    kind: String.fromCharCode(bytes[head.rest_start] as number) as FrameKind,
    subject: bytes.toString('latin1', subject_start, subject_end),
    number: numberOfDigits(bytes, subject_end + 1, number_end),
    body_start: number_end + 1,
    body_end: end,
  };
}

/**
 * Where the frame at `start` ends if its newline is damaged, so that it runs into the next line; undefined if that
 * isn't the case.
 */
export function endOfUnended(bytes: Buffer, start: number, end: number): number | undefined {
  const head = headOf(bytes, start, end);
  const own_end = head && head.rest_start + head.length;
  return own_end !== undefined && own_end < end && decodeFrame(bytes, start, own_end) ? own_end : undefined;
}

/**
 * Where the frame at `start` ends if damage produced a newline inside it, the first one at `end`; undefined if the rest
 * is a separate line.
 */
export function endOfSplit(bytes: Buffer, start: number, end: number): number | undefined {
  const head = headOf(bytes, start, end);
  const own_end = head ? head.rest_start + head.length : 0;
  if (own_end <= end || bytes[own_end] !== NEWLINE) return undefined;
  const next_end = bytes.indexOf(NEWLINE, end + 1);
  const isLine =
    next_end === end + 1 || decodeFrame(bytes, end + 1, next_end) || isCutShort(bytes, end + 1, next_end);
  return isLine ? undefined : own_end;
}

/** Whether an invalid line was cut short while being written, as far as the line itself shows. */
export function isCutShort(bytes: Buffer, start: number, end: number): boolean {
  const head = headOf(bytes, start, end);
  if (!head) return CUT_HEAD.test(bytes.toString('latin1', start, Math.min(end, start + HEAD_BYTES_MAX)));
  if (head.length <= end - head.rest_start) return false;
  // If the checksum matches with the correct length, the line is complete and only its length is damaged.
  const whole = `${end - head.rest_start} ${bytes.toString('latin1', head.rest_start, end)}`;
  return crc32(Buffer.from(whole, 'latin1')) !== sumOf(bytes, start);
}

/** The subject of a damaged line, if it can still be recognised as one of `subjects`. */
export function subjectOfDamaged(
  bytes: Buffer,
  start: number,
  end: number,
  subjects: { has(subject: string): boolean; keys(): Iterable<string> },
): string | undefined {
  const line = bytes.toString('latin1', start, Math.min(end, start + HEAD_BYTES_MAX + SUBJECT_BYTES_MAX));
  for (const word of line.split(' ').slice(1, 6)) if (subjects.has(word)) return word;
  for (const subject of subjects.keys()) {
    for (let at = LENGTH_START; at <= HEAD_BYTES_MAX; at++) {
      if (differences(line, at, subject) <= SUBJECT_ERRORS_MAX) return subject;
    }
  }
  return undefined;
}

const sumOf = (bytes: Buffer, start: number): number =>
  Number.parseInt(bytes.toString('latin1', start, start + CHECKSUM_DIGITS), 16);

/** The length stated by a line, and where the counted bytes begin. */
function headOf(bytes: Buffer, start: number, end: number) {
  const length_start = start + LENGTH_START;
  const length_end = endOfDigits(bytes, length_start, Math.min(end, length_start + LENGTH_DIGITS_MAX));
  if (length_end >= end || bytes[length_end] !== SPACE || bytes[length_start - 1] !== SPACE) return undefined;
  const length = numberOfDigits(bytes, length_start, length_end);
  return length > 0 ? { length, rest_start: length_end + 1 } : undefined;
}

function differences(line: string, at: number, subject: string): number {
  let count = 0;
  for (let i = 0; i < subject.length && count <= SUBJECT_ERRORS_MAX; i++)
    if (line.charCodeAt(at + i) !== subject.charCodeAt(i)) count++;
  return count;
}
