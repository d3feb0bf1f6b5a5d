import { discontinuity, NOTHING_STORED } from './append-order.ts';
import type { Decoded } from './checked-line.ts';
import type { JournalRecord } from './journal.ts';
import type { Damage } from './store.ts';

/** How many ranges of missing events the message lists. */
const RANGES_MAX = 3;

type Range = readonly [first: number, last: number];

/**
 * The sound part of a stored run: takes records one at a time, up to the first that can't be read or doesn't follow.
 * Later records are never used; they only show which events are missing.
 */
export class JournalPrefix {
  readonly #records: JournalRecord[] = [];
  /** The sequence number where reading began, then the end of every sound record, kept or not. */
  readonly #seqs: [number, ...number[]];
  #reason: string | undefined;
  /** Readable events after the damage. */
  #behind: Range[] = [];
  #known_seq = 0;

  /** `from`: the sequence number before the first record. By default, reading starts at the run's header. */
  constructor(from: number = NOTHING_STORED) {
    this.#seqs = [from];
  }

  get records(): readonly JournalRecord[] {
    return this.#records;
  }

  /** Sequence number of the last sound record; {@link NOTHING_STORED} if there isn't even a header. */
  get seq(): number {
    return this.#seqs.at(-1) as number;
  }

  /** False once an unusable record was found. */
  get isSound(): boolean {
    return this.#reason === undefined;
  }

  get damage(): Damage | undefined {
    if (this.#reason === undefined) return undefined;
    return {
      record: this.#seqs.length - 1,
      seq: Math.max(this.seq, 0),
      reason: [this.#reason, ...this.#losses()].join('; '),
    };
  }

  add(read: Decoded<JournalRecord>): void {
    if ('reason' in read) {
      this.break(read.reason);
      return;
    }
    const record = read.value;
    const reason = this.#reason ?? discontinuity(record, this.seq);
    if (reason !== undefined) {
      this.break(reason);
      if (record.events.length > 0) this.#behind.push([record.seq - record.events.length + 1, record.seq]);
      return;
    }
    this.#records.push(record);
    this.#seqs.push(record.seq);
  }

  /** Skips a record before the requested part without decoding it. Must be called before the first kept record. */
  pass(seq: number): void {
    const isNext = this.seq < 0 ? seq === 0 : seq > this.seq;
    if (!isNext) this.break(`event ${seq} does not follow event ${this.seq}`);
    if (this.isSound) this.#seqs.push(seq);
  }

  /** Marks everything that follows as unusable. Only the first reason is kept. */
  break(reason: string): void {
    this.#reason ??= reason;
  }

  /** Notes evidence that events up to `seq` were stored. */
  expect(seq: number): void {
    this.#known_seq = Math.max(this.#known_seq, seq);
    if (this.seq < seq) this.break('the journal is too short');
  }

  /**
   * Goes back to where a successor took over, which discards all damage after that point. False if the point wasn't
   * reached.
   */
  rewind(seq: number): boolean {
    while (this.seq > seq && this.#seqs.length > 1) {
      this.#seqs.pop();
      this.#records.pop();
    }
    if (this.seq < seq) {
      this.expect(seq);
      return false;
    }
    this.#reason = undefined;
    this.#behind = [];
    this.#known_seq = 0;
    return true;
  }

  #losses(): string[] {
    const behind = this.#behind.filter(([, last]) => last > this.seq).sort(([a], [b]) => a - b);
    const missing: Range[] = [];
    let seq = Math.max(this.seq, 0);
    for (const [first, last] of behind) {
      if (first > seq + 1) missing.push([seq + 1, first - 1]);
      seq = Math.max(seq, last);
    }
    if (this.#known_seq > seq) missing.push([seq + 1, this.#known_seq]);
    const losses: string[] = [];
    if (missing.length > 0) losses.push(`missing: ${spell(missing)}`);
    if (behind.length > 0) losses.push(`discarded: ${spell(behind)}`);
    return losses;
  }
}

function spell(ranges: readonly Range[]): string {
  const joined: [number, number][] = [];
  for (const [first, last] of ranges) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  const spelled = joined.slice(0, RANGES_MAX).map(([first, last]) => `events ${first} to ${last}`);
  return spelled.join(', ') + (joined.length > RANGES_MAX ? ' and more' : '');
}
