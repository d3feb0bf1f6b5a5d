import type { Delta } from '../plans/delta.ts';
import { bodyOf, checkedLine, type Decoded, parsedBody } from './checked-line.ts';
import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';
import { believedText, withProof } from './proven-text.ts';
import type { Seal } from './seal.ts';

/*
 * One record is one checked line of the JSON
 *
 *   [seq, [series, …], header or null, at_ms or null, proof]
 *
 * or, when it is sealed, [seq, sealed], a string that holds the same JSON encrypted. Both are bound to the run, its owner,
 * the epoch and the sequence number. A series is made of events that
 * carry one delta of the same kind and nothing else,
 *
 *   ["t" | "f" | "r", text, [length, …]]      text, refusal, reasoning
 *   ["a", text, [length, …], index]           tool_arguments of one call
 *
 * or one event of any shape, ["e", [delta, …], payload?]. Lengths are UTF-16 units, so that an event which ends in
 * half a surrogate pair is rebuilt as it was. JSON.stringify escapes what UTF-8 cannot carry and every newline.
 */

const CODES = { text: 't', refusal: 'f', reasoning: 'r', tool_arguments: 'a' } as const;
const OPENING_BRACKET = 0x5b;
const COMMA = 0x2c;

type MergedKind = keyof typeof CODES;
type MergedDelta = Extract<Delta, { readonly kind: MergedKind }>;
type Series = [code: string, text: string, lengths: number[], index?: number] | [code: 'e', ...unknown[]];

/** One line, newline included. `seal`: the one of this epoch of the run. */
export const encodeRecord = (record: JournalRecord, seal?: Seal): string =>
  checkedLine(encodeRecordBody(record, seal));

/** The same without its checksum and newline: JSON that begins with `[` and the sequence number. */
export function encodeRecordBody(record: JournalRecord, seal?: Seal): string {
  const { seq, events, header = null, at_ms = null } = record;
  const text = JSON.stringify([seq, seriesOf(events), header, at_ms]);
  if (!seal?.encrypts) return withProof(text, seal, placeOf(seq));
  return JSON.stringify([seq, seal.seal(text, placeOf(seq))]);
}

/** Of a record in its epoch: what it is sealed or proven for. */
const placeOf = (seq: number): string => `record ${seq}`;

/** The record of one line (with or without its newline), or why there is none. `seal`: the one of this epoch of the run. */
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

/** The sequence number in the body of a line, which is all that is wanted of many; undefined if it is no record. */
export function seqOf(body: Uint8Array): number | undefined {
  if (body[0] !== OPENING_BRACKET) return undefined;
  const comma = body.indexOf(COMMA);
  const seq = Number(
    Buffer.from(body.buffer, body.byteOffset + 1, Math.max(comma - 1, 0)).toString('latin1'),
  );
  return comma > 1 && Number.isSafeInteger(seq) ? seq : undefined;
}

/** The record in the body of a line. What is not proven to belong there is none, unless the seal accepts it. */
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

/** `said`: what was parsed of the body. */
function recordIn(said: unknown): Decoded<JournalRecord> {
  if (!Array.isArray(said) || !Array.isArray(said[1])) return { reason: 'not a record' };
  const [seq, all, header, at_ms] = said as [number, unknown[], (RunHeader | null)?, (number | null)?];
  const events: JournalEvent[] = [];
  for (const series of all) {
    if (!Array.isArray(series) || !expand(series as Series, events)) return { reason: 'unknown series' };
  }
  return { value: { seq, ...(typeof at_ms === 'number' && { at_ms }), ...(header && { header }), events } };
}

/** Appends the events of one series; false when a newer version of the format wrote it. */
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
 * Most records are a few events of text, or of reasoning, of which JSON, checksum and number would be the larger part. Where
 * the place of a line already says which record it is, and its proof that it is whole, it is
 *
 *   "~" | "^"  text  " "  the length of each event as a digit to base 36  " "  at_ms to base 36  " "  proof
 *
 * and may hold line breaks.
 */

const PLAIN_CODES: Partial<Record<Delta['kind'], string>> = { text: '~', reasoning: '^' };
const PLAIN_KINDS: Readonly<Record<string, 'text' | 'reasoning'>> = { '~': 'text', '^': 'reasoning' };
const PLAIN_LENGTH_MAX = 35;
const PLAIN = /^(.*) ([\da-z]+) ([\da-z]+)$/s;

/** Undefined for what is more than text of one kind, and where nothing proves it. */
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

/** True for the line of a record that {@link decodePlainRecord} reads. */
export const isPlainRecord = (line: Uint8Array): boolean => String.fromCharCode(line[0] ?? 0) in PLAIN_KINDS;

/** The record in the place of `seq`, or why there is none. */
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
