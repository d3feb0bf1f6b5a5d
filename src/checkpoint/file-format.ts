import { NOTHING_STORED } from './append-order.ts';
import type { JournalRecord } from './journal.ts';
import { discontinuity } from './journal-fold.ts';
import { decodeRecordBody, encodeRecord, openLine, sealLine } from './record-codec.ts';
import type { Damage, FinalStatus, RunId, RunStatus } from './store.ts';
import { FINAL_STATUSES } from './store.ts';

/*
 * A file is an opening line, one line per record, and in the end a final line; every line carries its checksum.
 * The opening line of epoch 2 and later says after which event (`base`) it continues the epochs before it: whatever a
 * fenced writer may still add to an older file lies beyond `base` and is never read.
 */

const VERSION = 1;
const NEWLINE = 0x0a;

export interface Opening {
  readonly run: RunId;
  readonly epoch: number;
  /** SHA-256 of the owner, hex. */
  readonly owner: string;
  readonly base: number;
}

/** What the files of one run say. */
export interface RunImage {
  readonly opening: Opening;
  readonly status: RunStatus;
  readonly seq: number;
  readonly records: readonly JournalRecord[];
  readonly damage?: Damage;
}

export const encodeOpening = (opening: Opening): string =>
  sealLine(JSON.stringify({ v: VERSION, ...opening }));
export const encodeFinal = (status: FinalStatus, seq: number): string =>
  sealLine(JSON.stringify({ status, seq }));

/** A finished run as one file, whatever files it was written to. */
export function encodeFinished(opening: Opening, image: RunImage, status: FinalStatus): string {
  const merged = { ...opening, base: NOTHING_STORED };
  return encodeOpening(merged) + image.records.map(encodeRecord).join('') + encodeFinal(status, image.seq);
}

/** The opening line of a file, if it is whole and belongs to this run. */
export function decodeOpening(bytes: Buffer, run: RunId): Opening | undefined {
  const end = bytes.indexOf(NEWLINE);
  if (end < 0) return undefined;
  const line = openLine(bytes.subarray(0, end));
  if ('reason' in line || !isObject(line.value)) return undefined;
  return line.value.v === VERSION && line.value.run === run ? (line.value as unknown as Opening) : undefined;
}

/**
 * Reads a run from the contents of its files, in the order of their epochs. Undefined when the first one has no
 * readable opening line: then nobody can be shown to own the run.
 */
export function decodeRun(files: readonly Buffer[], run: RunId): RunImage | undefined {
  let opening: Opening | undefined;
  const reader = new RunReader();
  for (const [position, bytes] of files.entries()) {
    const found = decodeOpening(bytes, run);
    if (!found && position === 0) return undefined;
    // A claim whose holder died before it wrote anything.
    if (!found) continue;
    opening = found;
    if (!reader.continueAfter(found.base)) break;
    reader.readLines(bytes.subarray(bytes.indexOf(NEWLINE) + 1));
  }
  return opening && { opening, ...reader.image() };
}

class RunReader {
  #records: JournalRecord[] = [];
  #seq = NOTHING_STORED;
  #final: { readonly status: FinalStatus; readonly seq: number } | undefined;
  #damage: Damage | undefined;

  /** Rewinds to where a successor took over; false when records before that point are missing. */
  continueAfter(base: number): boolean {
    if (this.#seq < base) {
      this.#damage ??= this.#damaged(`events up to ${base} are missing`);
      return false;
    }
    while (this.#records.length > 0 && this.#seq > base) {
      this.#records.pop();
      this.#seq = this.#records.at(-1)?.seq ?? NOTHING_STORED;
    }
    this.#damage = undefined;
    this.#final = undefined;
    return true;
  }

  readLines(bytes: Buffer): void {
    let start = 0;
    while (start < bytes.length && !this.#damage) {
      const end = bytes.indexOf(NEWLINE, start);
      const reason = end < 0 ? 'the last line is torn' : this.#readLine(bytes.subarray(start, end));
      if (reason) this.#damage = this.#damaged(reason);
      start = end + 1;
    }
  }

  image(): Omit<RunImage, 'opening'> {
    const [records, seq] = [this.#records, this.#seq];
    if (this.#final?.seq === seq && !this.#damage) return { status: this.#final.status, seq, records };
    return this.#damage
      ? { status: 'running', seq, records, damage: this.#damage }
      : { status: 'running', seq, records };
  }

  #readLine(line: Buffer): string | undefined {
    const opened = openLine(line);
    if ('reason' in opened) return opened.reason;
    if (this.#final) return 'a line after the final one';
    if (isObject(opened.value)) return this.#readFinal(opened.value);
    const record = decodeRecordBody(opened.value);
    if ('reason' in record) return record.reason;
    const reason = discontinuity(record.value, this.#seq);
    if (reason) return reason;
    this.#records.push(record.value);
    this.#seq = record.value.seq;
    return undefined;
  }

  #readFinal({ status, seq }: Record<string, unknown>): string | undefined {
    const known = FINAL_STATUSES.find((final) => final === status);
    if (!known) return 'unknown line';
    if (seq !== this.#seq) return `events up to ${seq} are missing`;
    this.#final = { status: known, seq };
    return undefined;
  }

  #damaged(reason: string): Damage {
    return { record: this.#records.length, reason };
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
