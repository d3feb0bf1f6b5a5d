import { checkedLine, type Decoded, openLine } from '../checked-line.ts';
import type { JournalRecord } from '../journal.ts';
import { JournalPrefix } from '../journal-prefix.ts';
import { decodeRecord } from '../record-codec.ts';
import type { Seal } from '../seal.ts';
import { FINAL_STATUSES, type Owner, type RunEnd, type RunId, type Takeover } from '../store.ts';
import type { RawEntry } from './scripts.ts';

/*
 * The log of a run is a stream. The id of an entry is `<epoch>-<number>`, and its field `l` a line with its checksum:
 *
 *   number 0              the opening of the epoch; its field `t` is unique to one acquisition
 *   number seq + 1        a record that ends with event seq
 *   the highest number    the end of the run
 *
 * A stream takes no id that is not above its last one. So the opening of an epoch excludes every writer of an earlier
 * epoch, and the end excludes every writer that does not open another epoch, which the scripts prevent.
 */

const VERSION = 1;
/** The highest number a stream can hold. JavaScript cannot represent it as a number. */
export const END_NUMBER = '18446744073709551615';

export interface Opening {
  readonly run: RunId;
  readonly epoch: number;
  readonly owner: Owner;
  /** The replica that delivers the run in this epoch; absent when it was released. */
  readonly holder?: string;
  /** The last event of the epochs before this one; -1 when they had not even a header. */
  readonly base: number;
  /** Of {@link StoredRun}, up to this epoch. */
  readonly takeovers: readonly Takeover[];
}

export const openingId = (epoch: number): string => `${epoch}-0`;
export const recordNumber = (seq: number): string => String(seq + 1);
export const recordId = (epoch: number, seq: number): string => `${epoch}-${recordNumber(seq)}`;
export const endId = (epoch: number): string => `${epoch}-${END_NUMBER}`;

export interface EntryId {
  readonly epoch: number;
  readonly kind: 'opening' | 'record' | 'end';
  /** Of a record, the event it ends with. */
  readonly seq: number;
}

export function parseId(id: string): EntryId {
  const [epoch = '', number = ''] = id.split('-');
  const kind = number === '0' ? 'opening' : number === END_NUMBER ? 'end' : 'record';
  return { epoch: Number(epoch), kind, seq: Number(number) - 1 };
}

export const encodeOpening = (opening: Opening): string =>
  checkedLine(JSON.stringify({ v: VERSION, ...opening }));

/** `seq`: of the last event, so that a reader knows when some are missing. */
export const encodeEnd = (end: RunEnd, seq: number): string => checkedLine(JSON.stringify({ ...end, seq }));

/** The opening in an entry, if it is whole and belongs to this run. */
export function decodeOpening([id, fields]: RawEntry, run: RunId): Opening | undefined {
  const opened = openLine(lineOf(fields));
  if ('reason' in opened) return undefined;
  const opening = opened.value as Opening & { readonly v: number };
  const fits = opening.v === VERSION && opening.run === run && openingId(opening.epoch) === id.toString();
  return fits ? opening : undefined;
}

/** The end in an entry, if it is whole. */
export function decodeEnd([, fields]: RawEntry): { readonly end: RunEnd; readonly seq: number } | undefined {
  const opened = openLine(lineOf(fields));
  if ('reason' in opened) return undefined;
  const { seq, status, at_ms, cause } = opened.value as RunEnd & { readonly seq: number };
  if (!FINAL_STATUSES.includes(status)) return undefined;
  return { end: cause === undefined ? { status, at_ms } : { status, at_ms, cause }, seq };
}

/** The record in an entry, or why there is none. */
export function decodeEntry([id, fields]: RawEntry, seal: Seal | undefined): Decoded<JournalRecord> {
  const read = decodeRecord(lineOf(fields), seal);
  if ('reason' in read || read.value.seq === parseId(id.toString()).seq) return read;
  return { reason: 'a record in the place of another' };
}

/** Where a log is read from when it is not read from its first entry on. */
export interface ReadingPoint {
  readonly opening: Opening;
  /** Of the last event before it. */
  readonly seq: number;
  readonly last_id: string;
}

/** Reads a log, one entry after another. */
export class LogReader {
  readonly run: RunId;
  readonly prefix: JournalPrefix;
  readonly #seal: Seal | undefined;
  #opening: Opening | undefined;
  #end: RunEnd | undefined;
  #last_id: string;

  constructor(run: RunId, seal: Seal | undefined, from?: ReadingPoint) {
    this.run = run;
    this.#seal = seal;
    this.#opening = from?.opening;
    this.#last_id = from?.last_id ?? '';
    this.prefix = new JournalPrefix(from?.seq);
  }

  /** Of the latest epoch whose opening can be read; undefined when the owner of the run is unknown. */
  get opening(): Opening | undefined {
    return this.#opening;
  }

  /** Empty for a log without entries. */
  get last_id(): string {
    return this.#last_id;
  }

  get epoch(): number {
    return parseId(this.#last_id).epoch;
  }

  /** The replica that opened the latest epoch; undefined when it was released, and when that cannot be read. */
  get holder(): string | undefined {
    return this.#opening?.epoch === this.epoch ? this.#opening.holder : undefined;
  }

  /** Undefined while the run lasts. The time at which a damaged run ended may be unknown. */
  get end(): RunEnd | undefined {
    if (parseId(this.#last_id).kind !== 'end') return undefined;
    return this.prefix.damage ? { at_ms: 0, ...this.#end, status: 'recovered_from_partial' } : this.#end;
  }

  add(entry: RawEntry): void {
    this.#last_id = entry[0].toString();
    const { kind } = parseId(this.#last_id);
    if (kind === 'opening') this.#addOpening(entry);
    else if (kind === 'end') this.#addEnd(entry);
    else this.prefix.add(decodeEntry(entry, this.#seal));
  }

  #addOpening(entry: RawEntry): void {
    const opening = decodeOpening(entry, this.run);
    if (!opening) {
      this.prefix.break('the opening of an epoch cannot be read');
      return;
    }
    this.prefix.rewind(opening.base);
    this.#opening = opening;
  }

  #addEnd(entry: RawEntry): void {
    const decoded = decodeEnd(entry);
    if (!decoded) {
      this.prefix.break('the end of the run cannot be read');
      return;
    }
    this.#end = decoded.end;
    this.prefix.expect(decoded.seq);
  }
}

const EMPTY = Buffer.alloc(0);

const lineOf = (fields: readonly Buffer[]): Buffer => fields[1] ?? EMPTY;
