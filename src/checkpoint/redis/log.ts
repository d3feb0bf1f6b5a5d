import { isObject } from '../../lib/json.ts';
import { bodyOf, checkedLine, type Decoded, parsedBody } from '../checked-line.ts';
import type { JournalRecord } from '../journal.ts';
import { JournalPrefix } from '../journal-prefix.ts';
import { type Believed, believedText, withProof } from '../proven-text.ts';
import {
  decodePlainRecord,
  decodeRecord,
  encodePlainRecord,
  encodeRecord,
  isPlainRecord,
} from '../record-codec.ts';
import { epochSeal, type Seal } from '../seal.ts';
import { FINAL_STATUSES, type Owner, type RunEnd, type RunId, type Takeover } from '../store.ts';
import type { RawEntry } from './scripts.ts';

/*
 * The log of a run is a stream. The id of an entry is `<epoch>-<number>`; its field `l` is a line with a checksum or a
 * proof:
 *
 *   number 0              the opening of the epoch; its field `t` is unique to one acquisition
 *   number seq + 1        a record that ends with event seq
 *   the highest number    the end of the run
 *
 * A stream rejects ids that don't exceed its last one. So the opening of an epoch excludes writers of earlier epochs,
 * and the end excludes every writer that doesn't open another epoch, which the scripts prevent.
 */

const VERSION = 1;
/** The places that openings and ends are proven for. An opening itself names its epoch and owner. */
const OPENING = 'opening';
const END = 'end';
/** The highest number that a stream supports. JavaScript can't represent it as a number. */
export const END_NUMBER = '18446744073709551615';

export interface Opening {
  readonly run: RunId;
  readonly epoch: number;
  readonly owner: Owner;
  /** The replica that delivers the run in this epoch; absent if it was released. */
  readonly holder?: string;
  /** The last event before this epoch; -1 if there wasn't even a header. */
  readonly base: number;
  /** See {@link StoredRun}; up to this epoch. */
  readonly takeovers: readonly Takeover[];
}

export const openingId = (epoch: number): string => `${epoch}-0`;
export const recordNumber = (seq: number): string => String(seq + 1);
export const recordId = (epoch: number, seq: number): string => `${epoch}-${recordNumber(seq)}`;
export const endId = (epoch: number): string => `${epoch}-${END_NUMBER}`;

export interface EntryId {
  readonly epoch: number;
  readonly kind: 'opening' | 'record' | 'end';
  /** For a record, its last event. */
  readonly seq: number;
}

export function parseId(id: string): EntryId {
  const [epoch = '', number = ''] = id.split('-');
  const kind = number === '0' ? 'opening' : number === END_NUMBER ? 'end' : 'record';
  return { epoch: Number(epoch), kind, seq: Number(number) - 1 };
}

/** `seal`: the store's seal. */
export const encodeOpening = (opening: Opening, seal: Seal | undefined): string =>
  checkedLine(withProof(JSON.stringify({ v: VERSION, ...opening }), seal?.for(opening.run), OPENING));

/** `seq`: the last event, so that a reader notices missing ones. `seal`: the seal of the epoch that ends. */
export const encodeEnd = (end: RunEnd, seq: number, seal: Seal | undefined): string =>
  checkedLine(withProof(JSON.stringify({ ...end, seq }), seal, END));

/** An epoch whose opening was verified. */
export interface OpenedEpoch {
  readonly opening: Opening;
  /** Seals the rest of the epoch; undefined if the store has no seal. */
  readonly seal: Seal | undefined;
}

/** The verified opening of an entry, or why it isn't one of this run. `seal`: the store's seal. */
export function decodeOpening(
  [id, fields]: RawEntry,
  run: RunId,
  seal: Seal | undefined,
): Decoded<OpenedEpoch> {
  const read = saidIn(fields, seal?.for(run), OPENING);
  if ('reason' in read) return read;
  const opening = read.value.said as unknown as Opening & { readonly v: number };
  const { v, owner, epoch } = opening;
  if (v !== VERSION || opening.run !== run || openingId(epoch) !== id.toString())
    return { reason: 'of another run, epoch or format' };
  return { value: { opening, seal: epochSeal(seal, run, owner, epoch, read.value.isProven) } };
}

/** The end in an entry, or why there is none. `seal`: the seal of its epoch. */
export function decodeEnd(
  [, fields]: RawEntry,
  seal: Seal | undefined,
): Decoded<{ readonly end: RunEnd; readonly seq: number }> {
  const read = saidIn(fields, seal, END);
  if ('reason' in read) return read;
  const { seq, status, at_ms, cause } = read.value.said as unknown as RunEnd & { readonly seq: number };
  if (!FINAL_STATUSES.includes(status)) return { reason: 'an unknown status' };
  return { value: { end: cause === undefined ? { status, at_ms } : { status, at_ms, cause }, seq } };
}

interface Said extends Believed {
  readonly said: Readonly<Record<string, unknown>>;
}

function saidIn(fields: readonly Buffer[], seal: Seal | undefined, place: string): Decoded<Said> {
  const body = bodyOf(lineOf(fields));
  if ('reason' in body) return body;
  const believed = believedText(body.value.toString(), seal, place);
  if ('reason' in believed) return believed;
  const said = parsedBody(believed.value.text);
  return isObject(said) ? { value: { ...believed.value, said } } : { reason: 'not JSON' };
}

/** The line of a record. `seal`: the seal of its epoch. */
export const encodeLine = (record: JournalRecord, seal: Seal | undefined): string =>
  encodePlainRecord(record, seal) ?? encodeRecord(record, seal);

/** The record in an entry, or why there is none. */
export function decodeEntry([id, fields]: RawEntry, seal: Seal | undefined): Decoded<JournalRecord> {
  const line = lineOf(fields);
  const { seq } = parseId(id.toString());
  if (isPlainRecord(line)) return decodePlainRecord(line, seq, seal);
  const read = decodeRecord(line, seal);
  if ('reason' in read || read.value.seq === seq) return read;
  return { reason: 'a record in the place of another' };
}

/** Where to start reading a log, other than at its first entry. */
export interface ReadingPoint {
  readonly opened: OpenedEpoch;
  /** The last event before this point. */
  readonly seq: number;
  readonly last_id: string;
}

/** Reads a log one entry at a time. */
export class LogReader {
  readonly run: RunId;
  readonly prefix: JournalPrefix;
  /** The store's seal. */
  readonly #seal: Seal | undefined;
  #opened: OpenedEpoch | undefined;
  #end: RunEnd | undefined;
  #last_id: string;

  constructor(run: RunId, seal: Seal | undefined, from?: ReadingPoint) {
    this.run = run;
    this.#seal = seal;
    this.#opened = from?.opened;
    this.#last_id = from?.last_id ?? '';
    this.prefix = new JournalPrefix(from?.seq);
  }

  /** The opening of the latest verified epoch; undefined if the run's owner is unknown. */
  get opening(): Opening | undefined {
    return this.#opened?.opening;
  }

  /** Empty for a log without entries. */
  get last_id(): string {
    return this.#last_id;
  }

  get epoch(): number {
    return parseId(this.#last_id).epoch;
  }

  /** The replica that opened the latest epoch; undefined if the epoch was released or can't be read. */
  get holder(): string | undefined {
    return this.opening?.epoch === this.epoch ? this.opening.holder : undefined;
  }

  /** Undefined while the run lasts. The end time of a damaged run may be unknown (0). */
  get end(): RunEnd | undefined {
    if (parseId(this.#last_id).kind !== 'end') return undefined;
    return this.prefix.damage ? { at_ms: 0, ...this.#end, status: 'recovered_from_partial' } : this.#end;
  }

  add(entry: RawEntry): void {
    this.#last_id = entry[0].toString();
    const { kind } = parseId(this.#last_id);
    if (kind === 'opening') this.#addOpening(entry);
    else if (this.#seal && !this.#opened) this.prefix.break('no opening before it that can be believed');
    else if (kind === 'end') this.#addEnd(entry);
    else this.prefix.add(decodeEntry(entry, this.#opened?.seal));
  }

  #addOpening(entry: RawEntry): void {
    const read = decodeOpening(entry, this.run, this.#seal);
    const before = this.opening;
    if ('reason' in read) {
      this.prefix.break(`the opening of an epoch is not to be believed: ${read.reason}`);
      return;
    }
    const opened = read.value;
    if (before && before.owner !== opened.opening.owner) {
      this.prefix.break('an epoch was opened for another owner');
      return;
    }
    this.prefix.rewind(opened.opening.base);
    // An earlier epoch's writes may have replaced what the missing epoch delivered.
    if (isAnyMissing(opened.opening, before)) this.prefix.break('the opening of an earlier epoch is missing');
    this.#opened = opened;
  }

  #addEnd(entry: RawEntry): void {
    const decoded = decodeEnd(entry, this.#opened?.seal);
    if ('reason' in decoded) {
      this.prefix.break(`the end of the run cannot be read: ${decoded.reason}`);
      return;
    }
    this.#end = decoded.value.end;
    this.prefix.expect(decoded.value.seq);
  }
}

/** Whether the epochs read so far lack one that delivered events that the new epoch builds on. */
function isAnyMissing({ base, takeovers }: Opening, before: Opening | undefined): boolean {
  const read = before?.takeovers.length ?? 0;
  return takeovers.slice(read).some(({ seq }) => seq < base);
}

/** Distinguishes an opening from another one of the same epoch. */
export const tokenOf = ([, fields]: RawEntry): string => (fields[3] ?? EMPTY).toString();

const EMPTY = Buffer.alloc(0);

const lineOf = (fields: readonly Buffer[]): Buffer => fields[1] ?? EMPTY;
