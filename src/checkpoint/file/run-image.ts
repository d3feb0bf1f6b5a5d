import { isObject } from '../../lib/json.ts';
import type { JournalRecord } from '../journal.ts';
import { JournalPrefix } from '../journal-prefix.ts';
import { decodeRecordBody, seqOf } from '../record-codec.ts';
import type { Seal } from '../seal.ts';
import type { Damage, Holder, Owner, RunEnd, RunId, StoredRun, Takeover } from '../store.ts';
import { FINAL_STATUSES } from '../store.ts';
import { decodeFrame, type Frame } from './frame.ts';
import { decodeClaim } from './log-state.ts';

const NEWLINE = 0x0a;

/** What the lines of one run say. */
export interface RunImage {
  readonly owner: Owner;
  /** The latest epoch. */
  readonly epoch: number;
  readonly takeovers: readonly Takeover[];
  readonly seq: number;
  readonly records: readonly JournalRecord[];
  readonly end?: RunEnd;
  readonly damage?: Damage;
}

/** The lines of a run, and what is known without reading them. */
export interface FoundRun {
  readonly lines: Buffer;
  /** Of a run that was sealed: when. */
  readonly ended_at_ms?: number;
  /** Of a running run. */
  readonly holder: Holder;
}

/** What was found of a run. Without its opening line a run cannot be attributed to an owner. */
export type Interpretation =
  | { readonly owner: Owner; readonly stored: StoredRun; readonly damage: Damage | undefined }
  | { readonly owner?: never; readonly stored?: never; readonly damage: Damage };

/** `seal`: the store's. `from`: see {@link decodeRun}. */
export function interpretRun(run: RunId, found: FoundRun, seal: Seal | undefined, from = 0): Interpretation {
  const image = decodeRun(found.lines, run, seal, from);
  if (!image) return { damage: { record: 0, seq: 0, reason: 'the opening line cannot be read' } };
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

/** What a damaged run says about its end is not worth more than the rest behind the damage. */
const endOfDamaged = (at_ms: number | undefined): RunEnd | undefined =>
  at_ms === undefined ? undefined : { status: 'recovered_from_partial', at_ms, cause: 'damaged_checkpoint' };

/**
 * Reads a run from its lines, in the order of the log. Undefined when the first of them cannot be read. `seal`: the
 * store's. `from`: records that end there or before are not wanted, and only looked at to see that they are undamaged.
 */
export function decodeRun(lines: Buffer, run: RunId, seal: Seal | undefined, from = 0): RunImage | undefined {
  const reader = new RunReader(run, seal?.for(run), from);
  for (let start = 0; start < lines.length; ) {
    const newline = lines.indexOf(NEWLINE, start);
    const end = newline < 0 ? lines.length : newline;
    if (end > start && !reader.readLine(lines, start, end)) return undefined;
    start = end + 1;
  }
  return reader.image();
}

class RunReader {
  readonly #run: RunId;
  readonly #seal: Seal | undefined;
  readonly #from: number;
  readonly #prefix = new JournalPrefix();
  readonly #takeovers: Takeover[] = [];
  #owner: Owner | undefined;
  #epoch = 0;
  #end: RunEnd | undefined;

  constructor(run: RunId, seal: Seal | undefined, from: number) {
    this.#run = run;
    this.#seal = seal;
    this.#from = from;
  }

  /** False when it is the first one and cannot be read. */
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

  /** A rewound claim makes up for whatever is wrong behind its base, unless that cannot be reached. */
  #readClaim(frame: Frame, bytes: Buffer): void {
    const { epoch, owner, holder, base, isRewound } = decodeClaim(frame, bytes);
    this.#epoch = epoch;
    this.#owner ??= owner;
    if (epoch === 1) return;
    if (isRewound) this.#prefix.rewind(base);
    else if (base >= 0) this.#prefix.expect(base);
    // Its process may not have known the last events before it.
    if (holder !== undefined)
      this.#takeovers.push({ seq: Math.max(base, isRewound ? 0 : this.#prefix.seq, 0) });
  }

  #readRecord({ body_start, body_end }: Frame, bytes: Buffer): void {
    if (this.#end) this.#prefix.break('a line after the final one');
    const body = bytes.subarray(body_start, body_end);
    const seq = seqOf(body);
    if (seq !== undefined && seq <= this.#from && this.#from > 0 && this.#prefix.isSound)
      this.#prefix.pass(seq);
    else this.#prefix.add(decodeRecordBody(JSON.parse(body.toString()) as unknown, this.#seal));
  }

  #readEnd({ body_start, body_end }: Frame, bytes: Buffer): void {
    const said: unknown = JSON.parse(bytes.toString('utf8', body_start, body_end));
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
