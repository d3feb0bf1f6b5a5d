import { crc32 } from 'node:zlib';
import type { Delta } from '../plans/delta.ts';
import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';

/*
 * One record is one line: `<crc32 of the rest, 8 hex digits> <JSON>\n`, with the JSON
 *
 *   [seq, [segment, …], header?]
 *
 * where a segment is a merged series of events that carry one delta of the same kind and nothing else,
 *
 *   ["t" | "f" | "r", text, [length, …]]      text, refusal, reasoning
 *   ["a", text, [length, …], index]           tool_arguments of one call
 *
 * or one event of any shape, ["e", [delta, …], payload?]. Lengths are UTF-16 units, so that an event which ends in
 * half a surrogate pair is rebuilt as it was. JSON.stringify escapes what UTF-8 cannot carry and every newline.
 */

const CODES = { text: 't', refusal: 'f', reasoning: 'r', tool_arguments: 'a' } as const;
type MergedKind = keyof typeof CODES;
type MergedDelta = Extract<Delta, { readonly kind: MergedKind }>;
type Segment = [code: string, text: string, lengths: number[], index?: number] | [code: 'e', ...unknown[]];

const NEWLINE = 0x0a;
const CHECKSUM_DIGITS = 8;

export type Decoded<T> = { readonly value: T } | { readonly reason: string };

/** One line, newline included. */
export function encodeRecord(record: JournalRecord): string {
  const body: unknown[] = [record.seq, segmentsOf(record.events)];
  if (record.header) body.push(record.header);
  return sealLine(JSON.stringify(body));
}

/** The record of one line (with or without its newline), or why there is none. */
export function decodeRecord(line: string | Uint8Array): Decoded<JournalRecord> {
  const body = openLine(line);
  return 'reason' in body ? body : decodeRecordBody(body.value);
}

/** A line with its checksum. `body` must be JSON text without line breaks. */
export const sealLine = (body: string): string => `${checksumOf(body)} ${body}\n`;

/** The parsed body of a sealed line, or why it cannot be trusted. */
export function openLine(line: string | Uint8Array): Decoded<unknown> {
  // The checksum covers bytes: text decoded from damaged UTF-8 may encode to other bytes than were read.
  const bytes = typeof line === 'string' ? Buffer.from(line) : line;
  const end = bytes.at(-1) === NEWLINE ? bytes.length - 1 : bytes.length;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, end);
  if (end <= CHECKSUM_DIGITS + 1) return { reason: 'truncated line' };
  const body = buffer.subarray(CHECKSUM_DIGITS + 1);
  if (buffer.toString('latin1', 0, CHECKSUM_DIGITS + 1) !== `${checksumOf(body)} `)
    return { reason: 'checksum mismatch' };
  try {
    return { value: JSON.parse(body.toString()) as unknown };
  } catch {
    return { reason: 'not JSON' };
  }
}

/** Number.prototype.toString(16) and padding cost more than everything else about a line. */
const HEX_BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const hexByte = (word: number, shift: number): string => HEX_BYTES[(word >>> shift) & 0xff] as string;

function checksumOf(body: string | Uint8Array): string {
  const sum = crc32(body);
  return hexByte(sum, 24) + hexByte(sum, 16) + hexByte(sum, 8) + hexByte(sum, 0);
}

function segmentsOf(events: readonly JournalEvent[]): Segment[] {
  const segments: Segment[] = [];
  let open: Segment | undefined;
  for (const event of events) {
    const delta = mergeable(event);
    if (!delta) {
      segments.push(event.payload === undefined ? ['e', event.deltas] : ['e', event.deltas, event.payload]);
      open = undefined;
      continue;
    }
    const code = CODES[delta.kind];
    const index = delta.kind === 'tool_arguments' ? delta.index : undefined;
    if (open?.[0] === code && open[3] === index) {
      open[1] += delta.text;
      (open[2] as number[]).push(delta.text.length);
    } else {
      open =
        index === undefined
          ? [code, delta.text, [delta.text.length]]
          : [code, delta.text, [delta.text.length], index];
      segments.push(open);
    }
  }
  return segments;
}

function mergeable(event: JournalEvent): MergedDelta | undefined {
  const delta = event.deltas[0];
  if (!delta || event.deltas.length > 1 || event.payload !== undefined) return undefined;
  return delta.kind in CODES ? (delta as MergedDelta) : undefined;
}

/** The record in the body of a sealed line. */
export function decodeRecordBody(body: unknown): Decoded<JournalRecord> {
  if (!Array.isArray(body) || !Number.isSafeInteger(body[0]) || !Array.isArray(body[1])) {
    return { reason: 'not a record' };
  }
  const [seq, segments, header] = body as [number, unknown[], RunHeader?];
  const events: JournalEvent[] = [];
  for (const segment of segments) {
    if (!Array.isArray(segment) || !expand(segment as Segment, events)) return { reason: 'unknown segment' };
  }
  return { value: header ? { seq, header, events } : { seq, events } };
}

/** Appends the events of one segment; false when a newer version of the format wrote it. */
function expand(segment: Segment, events: JournalEvent[]): boolean {
  const [code, text, lengths, index] = segment;
  if (code === 'e') {
    const deltas = text as readonly Delta[];
    events.push(lengths === undefined ? { deltas } : { deltas, payload: lengths as string });
    return true;
  }
  const create = CREATORS[code as keyof typeof CREATORS];
  if (!create) return false;
  let start = 0;
  for (const length of lengths as number[]) {
    events.push({ deltas: [create((text as string).slice(start, start + length), index as number)] });
    start += length;
  }
  return true;
}

const CREATORS = {
  t: (text: string): Delta => ({ kind: 'text', text }),
  f: (text: string): Delta => ({ kind: 'refusal', text }),
  r: (text: string): Delta => ({ kind: 'reasoning', text }),
  a: (text: string, index: number): Delta => ({ kind: 'tool_arguments', index, text }),
};
