import { isObject } from '../../lib/json.ts';
import { NOTHING_STORED } from '../append-order.ts';
import { bodyOf, checkedLine, openLine } from '../checked-line.ts';
import type { JournalRecord } from '../journal.ts';
import { JournalPrefix } from '../journal-prefix.ts';
import { decodeRecordBody, encodeRecord, seqOf } from '../record-codec.ts';
import type { Seal } from '../seal.ts';
import type { Damage, Owner, RunEnd, RunId, Takeover } from '../store.ts';
import { FINAL_STATUSES } from '../store.ts';

/*
 * A file is an opening line, one line per record, and in the end a final line; every line carries its checksum.
 * The opening line of epoch 2 and later says after which event (`base`) it continues the epochs before it: whatever a
 * fenced writer may still add to an older file lies beyond `base` and is never read.
 */

const VERSION = 2;
const NEWLINE = 0x0a;

export interface Opening {
  readonly run: RunId;
  readonly epoch: number;
  readonly owner: Owner;
  /** The replica that holds the epoch. Absent when nobody does: the run was released. */
  readonly holder?: string;
  readonly base: number;
  /** In the file of a finished run: where the epochs began that were put together in it. */
  readonly takeovers?: readonly Takeover[];
}

/** What the files of one run say. */
export interface RunImage {
  readonly owner: Owner;
  /** The latest epoch. */
  readonly epoch: number;
  /** The opening line of the latest epoch; undefined while it cannot be read, or not yet. */
  readonly opening: Opening | undefined;
  readonly takeovers: readonly Takeover[];
  readonly seq: number;
  readonly records: readonly JournalRecord[];
  readonly end?: RunEnd;
  readonly damage?: Damage;
  /** The damage is nothing but a last line without its end, which may be one that is being written. */
  readonly isTorn: boolean;
}

export const encodeOpening = (opening: Opening): string =>
  checkedLine(JSON.stringify({ v: VERSION, ...opening }));

/** `seq`: of the last event, so that a missing one is noticed. */
export const encodeFinal = (end: RunEnd, seq: number): string => checkedLine(JSON.stringify({ ...end, seq }));

/** Whether the final line, at the end of the file of a finished run, says that the run is complete. */
export function isCompleteAtEnd(tail: Buffer): boolean {
  const line = openLine(tail.subarray(tail.lastIndexOf(NEWLINE, -2) + 1, -1));
  return 'value' in line && isObject(line.value) && line.value.status === 'complete';
}

/** A finished run as one file, whatever files it was written to. `seal`: the store's. */
export function encodeFinished(run: RunId, image: RunImage, end: RunEnd, seal: Seal | undefined): string {
  const { owner, epoch, takeovers, records, seq } = image;
  const opening = encodeOpening({ run, epoch, owner, base: NOTHING_STORED, takeovers });
  const run_seal = seal?.for(run);
  return opening + records.map((record) => encodeRecord(record, run_seal)).join('') + encodeFinal(end, seq);
}

/** The opening line at the start of a file, if it is whole and belongs to this run. */
export function decodeOpening(bytes: Buffer, run: RunId): Opening | undefined {
  const end = bytes.indexOf(NEWLINE);
  if (end < 0) return undefined;
  const line = openLine(bytes.subarray(0, end));
  if ('reason' in line || !isObject(line.value)) return undefined;
  return line.value.v === VERSION && line.value.run === run ? (line.value as unknown as Opening) : undefined;
}

/**
 * Reads a run from the contents of its files, in the order of their epochs; a finished run has one. Undefined when the
 * first one has no readable opening line: then nobody can be shown to own the run. `seal`: the store's. `from`: records
 * that end there or before are not wanted, and only looked at to see that they are undamaged.
 */
export function decodeRun(
  files: readonly Buffer[],
  run: RunId,
  seal: Seal | undefined,
  from = 0,
): RunImage | undefined {
  const openings = files.map((bytes) => decodeOpening(bytes, run));
  const [first] = openings;
  if (!first) return undefined;
  const reader = new RunReader(seal?.for(run), from);
  for (const [position, bytes] of files.entries()) {
    const opening = openings[position];
    if (opening) reader.readEpoch(opening.base, bytes.subarray(bytes.indexOf(NEWLINE) + 1));
    // An empty file is a claim whose holder died before it wrote anything, or has not written yet.
    else if (bytes.length > 0) reader.skipEpoch(position + 1, bytes.includes(NEWLINE));
  }
  const held = openings.slice(1).filter((opening) => opening?.holder !== undefined);
  return {
    owner: first.owner,
    epoch: Math.max(first.epoch, files.length),
    opening: openings.at(-1),
    takeovers: first.takeovers ?? held.map((opening) => ({ seq: Math.max(opening?.base ?? 0, 0) })),
    ...reader.image(),
  };
}

class RunReader {
  readonly #seal: Seal | undefined;
  readonly #from: number;
  readonly #prefix = new JournalPrefix();
  #end: RunEnd | undefined;
  #isTorn: boolean = false;

  constructor(seal: Seal | undefined, from: number) {
    this.#seal = seal;
    this.#from = from;
  }

  /** `base` makes up for whatever is wrong behind it, unless it cannot be reached. */
  readEpoch(base: number, bytes: Buffer): void {
    if (this.#prefix.rewind(base)) this.#end = undefined;
    this.#isTorn = false;
    let start = 0;
    while (start < bytes.length) {
      const end = bytes.indexOf(NEWLINE, start);
      if (end < 0) {
        this.#tear('the last line is torn');
        return;
      }
      this.#readLine(bytes.subarray(start, end));
      start = end + 1;
    }
  }

  skipEpoch(epoch: number, isWhole: boolean): void {
    if (isWhole) this.#prefix.break(`the opening line of epoch ${epoch} cannot be read`);
    else this.#tear(`the opening line of epoch ${epoch} is torn`);
  }

  image(): Pick<RunImage, 'seq' | 'records' | 'end' | 'damage' | 'isTorn'> {
    const { seq, records, damage } = this.#prefix;
    const [end, isTorn] = [this.#end, this.#isTorn];
    return { seq, records, isTorn, ...(damage ? { damage } : end && { end }) };
  }

  #tear(reason: string): void {
    this.#isTorn = this.#prefix.isSound;
    this.#prefix.break(reason);
  }

  #readLine(line: Buffer): void {
    if (this.#end) this.#prefix.break('a line after the final one');
    if (this.#from > 0 && this.#pass(line)) return;
    const opened = openLine(line);
    if ('reason' in opened) this.#prefix.break(opened.reason);
    else if (isObject(opened.value)) this.#readFinal(opened.value);
    else this.#prefix.add(decodeRecordBody(opened.value, this.#seal));
  }

  /** False when the line has to be read. */
  #pass(line: Buffer): boolean {
    const body = bodyOf(line);
    const seq = 'value' in body ? seqOf(body.value) : undefined;
    if (seq === undefined || seq > this.#from || !this.#prefix.isSound) return false;
    this.#prefix.pass(seq);
    return true;
  }

  #readFinal({ seq, ...end }: Record<string, unknown>): void {
    const isKnown = FINAL_STATUSES.some((status) => status === end.status);
    if (!isKnown || typeof seq !== 'number') {
      this.#prefix.break('unknown line');
      return;
    }
    this.#prefix.expect(seq);
    if (this.#prefix.seq > seq) this.#prefix.break('the final line is older than the events before it');
    this.#end = end as unknown as RunEnd;
  }
}
