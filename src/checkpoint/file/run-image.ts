import { isObject } from '../../lib/json.ts';
import type { JournalRecord } from '../journal.ts';
import { JournalPrefix } from '../journal-prefix.ts';
import { believedText } from '../proven-text.ts';
import { decodeRecordBody, seqOf } from '../record-codec.ts';
import { epochSeal, type Seal } from '../seal.ts';
import type { Damage, Holder, Owner, RunEnd, RunId, StoredRun, Takeover } from '../store.ts';
import { FINAL_STATUSES } from '../store.ts';
import { decodeFrame, type Frame } from './frame.ts';
import { decodeClaim, placeOfClaim } from './log-state.ts';

const NEWLINE = 0x0a;
/** Where the proof of a run's end is valid: in the end of its last epoch alone. */
export const PLACE_OF_END = 'end';

/** The content of one run's lines. */
export interface RunImage {
  readonly owner: Owner;
  readonly epoch: number;
  readonly takeovers: readonly Takeover[];
  readonly seq: number;
  readonly records: readonly JournalRecord[];
  readonly end?: RunEnd;
  readonly damage?: Damage;
}

/** A run's lines, and facts that are known without reading them. */
export interface FoundRun {
  readonly lines: Buffer;
  /** For a finished run, when it ended. */
  readonly ended_at_ms?: number;
  /** Meaningful for a running run only. */
  readonly holder: Holder;
}

/** What was found of a run. Without its opening line, its owner is unknown. */
export type Interpretation =
  | { readonly owner: Owner; readonly stored: StoredRun; readonly damage: Damage | undefined }
  | { readonly owner?: never; readonly stored?: never; readonly damage: Damage };

/** `seal`: the store's seal. `from`: see {@link decodeRun}. */
export function interpretRun(run: RunId, found: FoundRun, seal: Seal | undefined, from = 0): Interpretation {
  const reader = readRun(found.lines, run, seal, from);
  const image = reader.image();
  if (!image) return { damage: { record: 0, seq: 0, reason: reader.strangeness } };
  const { owner, epoch, takeovers, records, damage } = image;
  const end = image.end ?? endOfDamaged(found.ended_at_ms);
  const stored: StoredRun = {
    status: end?.status ?? 'running',
    ...(end && { end }),
    epoch,
    holder: end ? { state: 'released' } : found.holder,
    takeovers,
    seq: Math.max(image.seq, 0),
    records,
    ...(damage && { damage }),
  };
  return { owner, stored, damage };
}

/** A damaged run's stated end is no more reliable than anything else after the damage. */
const endOfDamaged = (at_ms: number | undefined): RunEnd | undefined =>
  at_ms === undefined ? undefined : { status: 'recovered_from_partial', at_ms, cause: 'damaged_checkpoint' };

/**
 * Reads a run from its lines in log order. Undefined if the first line can't be read. `seal`: the store's seal. `from`:
 * records that end at or before it are only checked for damage, not returned.
 */
export const decodeRun = (
  lines: Buffer,
  run: RunId,
  seal: Seal | undefined,
  from = 0,
): RunImage | undefined => readRun(lines, run, seal, from).image();

function readRun(lines: Buffer, run: RunId, seal: Seal | undefined, from: number): RunReader {
  const reader = new RunReader(run, seal, from);
  for (let start = 0; start < lines.length; ) {
    const newline = lines.indexOf(NEWLINE, start);
    const end = newline < 0 ? lines.length : newline;
    if (end > start && !reader.readLine(lines, start, end)) break;
    start = end + 1;
  }
  return reader;
}

class RunReader {
  readonly #run: RunId;
  /** The store's seal, not that of an epoch. */
  readonly #seal: Seal | undefined;
  /** The seal of the latest epoch whose claim was verified. */
  #epoch_seal: Seal | undefined;
  readonly #from: number;
  readonly #prefix = new JournalPrefix();
  readonly #takeovers: Takeover[] = [];
  #owner: Owner | undefined;
  #epoch = 0;
  /** The latest epoch whose claim was verified. */
  #believed = 0;
  #end: RunEnd | undefined;
  #strangeness = 'the opening line cannot be read';

  constructor(run: RunId, seal: Seal | undefined, from: number) {
    this.#run = run;
    this.#seal = seal;
    this.#from = from;
  }

  /** False if the line is the first and can't be read. */
  readLine(bytes: Buffer, start: number, end: number): boolean {
    const frame = decodeFrame(bytes, start, end);
    if (frame?.subject !== this.#run) {
      this.#prefix.break('checksum mismatch');
    } else if (frame.kind === 'c') {
      this.#readClaim(frame, bytes);
    } else if (frame.kind === 'r' || frame.kind === 'z') {
      this.#epoch = Math.max(this.#epoch, frame.number);
      if (frame.kind === 'z') this.#readEnd(frame, bytes);
      else this.#readRecord(frame, bytes);
    }
    return this.#owner !== undefined;
  }

  /** Why the run has no known owner. */
  get strangeness(): string {
    return this.#strangeness;
  }

  image(): RunImage | undefined {
    if (this.#owner === undefined) return undefined;
    const { seq, records, damage } = this.#prefix;
    const end = this.#end;
    return {
      owner: this.#owner,
      epoch: this.#epoch,
      takeovers: this.#takeovers,
      seq,
      records,
      ...(damage ? { damage } : end && { end }),
    };
  }

  /** A rewound claim discards any damage after its base, unless the base can't be reached. */
  #readClaim(frame: Frame, bytes: Buffer): void {
    const { epoch, owner, holder, base, isRewound } = decodeClaim(frame, bytes);
    const follows = epoch === this.#believed + 1;
    this.#epoch = epoch;
    const text = bytes.toString('utf8', frame.body_start, frame.body_end);
    const read = believedText(text, this.#seal?.for(this.#run), placeOfClaim(epoch));
    if ('reason' in read) {
      this.#strangeness = `the opening line is ${read.reason}`;
      this.#prefix.break(`the claim of an epoch is ${read.reason}`);
      return;
    }
    if (this.#owner !== undefined && this.#owner !== owner) {
      this.#prefix.break('an epoch is claimed for another owner');
      return;
    }
    this.#owner = owner;
    this.#believed = epoch;
    this.#epoch_seal = epochSeal(this.#seal, this.#run, owner, epoch, read.value.isProven);
    if (epoch === 1) return;
    if (this.#seal && !follows && !isRewound) this.#prefix.break('the claim of an earlier epoch is missing');
    if (isRewound) this.#prefix.rewind(base);
    else if (base >= 0) this.#prefix.expect(base);
    // The claiming process may not have known the last events before its claim.
    if (holder !== undefined)
      this.#takeovers.push({ seq: Math.max(base, isRewound ? 0 : this.#prefix.seq, 0) });
  }

  #readRecord({ body_start, body_end }: Frame, bytes: Buffer): void {
    if (this.#end) this.#prefix.break('a line after the final one');
    const seq = seqOf(bytes, body_start, body_end);
    if (seq !== undefined && seq <= this.#from && this.#from > 0 && this.#prefix.isSound)
      this.#prefix.pass(seq);
    else this.#prefix.add(decodeRecordBody(bytes.subarray(body_start, body_end), this.#epoch_seal));
  }

  #readEnd({ body_start, body_end }: Frame, bytes: Buffer): void {
    const read = believedText(bytes.toString('utf8', body_start, body_end), this.#epoch_seal, PLACE_OF_END);
    if ('reason' in read) {
      this.#prefix.break(read.reason);
      return;
    }
    const said: unknown = JSON.parse(read.value.text);
    const { seq, ...end } = isObject(said) ? said : {};
    if (typeof seq !== 'number' || !FINAL_STATUSES.some((status) => status === end.status)) {
      this.#prefix.break('unknown line');
      return;
    }
    this.#prefix.expect(seq);
    if (this.#prefix.seq > seq) this.#prefix.break('the final line is older than the events before it');
    this.#end = end as unknown as RunEnd;
  }
}
