import { endOfDigits, numberOfDigits } from '../lib/decimal.ts';
import type { Delta } from '../plans/delta.ts';
import { bodyOf, checkedLine, type Decoded, parsedBody } from './checked-line.ts';
import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';
import { believedText, withProof } from './proven-text.ts';
import type { Seal } from './seal.ts';

/*
 * A record is a checked line of the JSON
 *
 *   [seq, [series, …], header or null, at_ms or null, proof]
 *
 * or, sealed, [seq, sealed], where `sealed` is a string with the same JSON encrypted. Both are bound to the run, its
 * owner, the epoch and the sequence number. A series combines events that carry exactly one delta of the same kind,
 *
 *   ["t" | "f" | "r", text, [length, …]]      text, refusal, reasoning
 *   ["a", text, [length, …], index]           tool_arguments of one call
 *
 * or is a single event of any shape, ["e", [delta, …], payload?]. Lengths are in UTF-16 units, so that an event that
 * ends in half a surrogate pair is rebuilt exactly. JSON.stringify escapes newlines and everything that UTF-8 can't
 * carry.
 */

const CODES = { text: 't', refusal: 'f', reasoning: 'r', tool_arguments: 'a' } as const;
const OPENING_BRACKET = 0x5b;
const COMMA = 0x2c;

type MergedKind = keyof typeof CODES;
type MergedDelta = Extract<Delta, { readonly kind: MergedKind }>;
type Series = [code: string, text: string, lengths: number[], index?: number] | [code: 'e', ...unknown[]];

/** One line with its newline. `seal`: the seal of this epoch of the run. */
export const encodeRecord = (record: JournalRecord, seal?: Seal): string =>
  checkedLine(encodeRecordBody(record, seal));

/** The line without its checksum and newline: JSON that begins with `[` and the sequence number. */
export function encodeRecordBody(record: JournalRecord, seal?: Seal): string {
  const { seq, events, header = null, at_ms = null } = record;
  const text = JSON.stringify([seq, seriesOf(events), header, at_ms]);
  if (!seal?.encrypts) return withProof(text, seal, placeOf(seq));
  return JSON.stringify([seq, seal.seal(text, placeOf(seq))]);
}

/** The place that a record is sealed or proven for within its epoch. */
const placeOf = (seq: number): string => `record ${seq}`;

/**
 * The record of a line (with or without its newline), or why it can't be read. `seal`: the seal of this epoch of the
 * run.
 */
export function decodeRecord(line: string | Uint8Array, seal?: Seal): Decoded<JournalRecord> {
  const body = bodyOf(line);
  return 'reason' in body ? body : decodeRecordBody(body.value, seal);
}

function seriesOf(events: readonly JournalEvent[]): Series[] {
  const all: Series[] = [];
  let open: Series | undefined;
  for (const event of events) {
    const delta = mergeable(event);
    if (!delta) {
      all.push(event.payload === undefined ? ['e', event.deltas] : ['e', event.deltas, event.payload]);
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
      all.push(open);
    }
  }
  return all;
}

function mergeable(event: JournalEvent): MergedDelta | undefined {
  const delta = event.deltas[0];
  if (!delta || event.deltas.length > 1 || event.payload !== undefined) return undefined;
  return delta.kind in CODES ? (delta as MergedDelta) : undefined;
}

/**
 * The sequence number of the line's body in the bytes from `start` to `end`, without decoding the rest; undefined if it
 * isn't a record.
 */
export function seqOf(bytes: Uint8Array, start: number, end: number): number | undefined {
  if (bytes[start] !== OPENING_BRACKET) return undefined;
  const digits_end = endOfDigits(bytes, start + 1, end);
  if (digits_end === start + 1 || bytes[digits_end] !== COMMA) return undefined;
  const seq = numberOfDigits(bytes, start + 1, digits_end);
  return Number.isSafeInteger(seq) ? seq : undefined;
}

/** The record of a line's body. Rejects a body without a valid proof, unless the seal accepts unproven ones. */
export function decodeRecordBody(body: Uint8Array, seal?: Seal): Decoded<JournalRecord> {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
  const parsed = parsedBody(text);
  if (!Array.isArray(parsed) || !Number.isSafeInteger(parsed[0])) return { reason: 'not a record' };
  const [seq, content] = parsed as [number, unknown];
  if (typeof content === 'string') return decodeSealed(seq, content, seal);
  const believed = believedText(text, seal, placeOf(seq));
  return 'reason' in believed ? believed : recordIn(parsed);
}

function decodeSealed(seq: number, sealed: string, seal: Seal | undefined): Decoded<JournalRecord> {
  const text = seal?.open(sealed, placeOf(seq));
  if (text === undefined) return { reason: 'sealed with a key that is not configured, or for another place' };
  const record = recordIn(parsedBody(text));
  return 'value' in record && record.value.seq !== seq ? { reason: 'sealed as another record' } : record;
}

/** `said`: the parsed body. */
function recordIn(said: unknown): Decoded<JournalRecord> {
  if (!Array.isArray(said) || !Array.isArray(said[1])) return { reason: 'not a record' };
  const [seq, all, header, at_ms] = said as [number, unknown[], (RunHeader | null)?, (number | null)?];
  const events: JournalEvent[] = [];
  for (const series of all) {
    if (!Array.isArray(series) || !expand(series as Series, events)) return { reason: 'unknown series' };
  }
  return { value: { seq, ...(typeof at_ms === 'number' && { at_ms }), ...(header && { header }), events } };
}

/** Appends the events of one series. False if a newer format version wrote it. */
function expand(series: Series, events: JournalEvent[]): boolean {
  const [code, text, lengths, index] = series;
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

/*
 * Most records are a few events of text or reasoning, for which JSON, checksum and sequence number would take more
 * space than the content. If the line's place already identifies the record and its proof covers integrity, the line is
 *
 *   "~" | "^"  text  " "  the length of each event as a digit to base 36  " "  at_ms to base 36  " "  proof
 *
 * and may contain line breaks.
 */

const PLAIN_CODES: Partial<Record<Delta['kind'], string>> = { text: '~', reasoning: '^' };
const PLAIN_KINDS: Readonly<Record<string, 'text' | 'reasoning'>> = { '~': 'text', '^': 'reasoning' };
const PLAIN_LENGTH_MAX = 35;
const PLAIN = /^(.*) ([\da-z]+) ([\da-z]+)$/s;

/** Undefined if the record isn't text of a single kind, or if there is no seal to prove it. */
export function encodePlainRecord(
  { seq, events, header, at_ms }: JournalRecord,
  seal: Seal | undefined,
): string | undefined {
  if (!seal || seal.encrypts || header || at_ms === undefined) return undefined;
  const kind = events[0]?.deltas[0]?.kind;
  const code = kind && PLAIN_CODES[kind];
  if (code === undefined) return undefined;
  let [text, lengths] = ['', ''];
  for (const event of events) {
    const delta = mergeable(event);
    if (!delta || delta.kind !== kind || delta.text.length > PLAIN_LENGTH_MAX) return undefined;
    text += delta.text;
    lengths += delta.text.length.toString(36);
  }
  if (!text.isWellFormed()) return undefined;
  return code + withProof(`${text} ${lengths} ${at_ms.toString(36)}`, seal, plainPlaceOf(seq, code));
}

const plainPlaceOf = (seq: number, code: string): string => `${placeOf(seq)} ${code}`;

/** Whether the line is in the form that {@link decodePlainRecord} reads. */
export const isPlainRecord = (line: Uint8Array): boolean => String.fromCharCode(line[0] ?? 0) in PLAIN_KINDS;

/** The record at `seq`, or why it can't be read. */
export function decodePlainRecord(line: Buffer, seq: number, seal: Seal | undefined): Decoded<JournalRecord> {
  const stored = line.toString();
  const code = stored.charAt(0);
  const kind = PLAIN_KINDS[code];
  const believed = believedText(stored.slice(1), seal, plainPlaceOf(seq, code));
  if ('reason' in believed) return believed;
  const [, text = '', lengths = '', at = ''] = PLAIN.exec(believed.value.text) ?? [];
  const events: JournalEvent[] = [];
  let end = 0;
  for (const digit of lengths) {
    const start = end;
    end += Number.parseInt(digit, 36);
    if (kind) events.push({ deltas: [{ kind, text: text.slice(start, end) }] });
  }
  if (!kind || events.length === 0 || end !== text.length) return { reason: 'not a record' };
  return { value: { seq, at_ms: Number.parseInt(at, 36), events } };
}
