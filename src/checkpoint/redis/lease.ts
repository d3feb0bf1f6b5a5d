import type { Turns } from '../append-order.ts';
import type { Seal } from '../seal.ts';
import { JournalGapError, type Lease, StaleLeaseError, type Takeover } from '../store.ts';
import { endId, openingId, parseId, recordId } from './log.ts';
import type { Mismatch } from './scripts.ts';

/**
 * A lease as the store that gave it knows it: what the log looks like if no other writer has touched it. It has one call at
 * a time, so that the next one knows what the last one stored.
 */
export class RedisLease implements Turns {
  readonly lease: Lease;
  /** Distinguishes this opening of the epoch from another one after Redis forgot this one. */
  readonly token: string;
  /** Its epoch is on the list of its replica on its account. */
  isListed: boolean = true;
  readonly takeovers: readonly Takeover[];
  /** Of this epoch. */
  readonly seal: Seal | undefined;
  isTaken: boolean = false;
  waiting: (() => void)[] | undefined;
  state: 'held' | 'finished' | 'fenced' = 'held';
  /** When the log was last kept from expiring. */
  kept_at_ms: number;
  /** The line of the opening, of the first epoch of a run, once Redis has acknowledged it. */
  opening_line: string | undefined;
  /** The last event before this epoch. */
  readonly #base: number;
  /** The latest entries that were written under this lease, and what they weigh. */
  #written: string[] = [];
  #written_bytes = 0;
  readonly #rewritable_bytes: number;
  /** They are all that was written. */
  #isWhole: boolean = true;
  /** The last call that wrote was answered. */
  #isConfirmed: boolean = true;
  /** Before this, Redis had everything that it had acknowledged. */
  #sound_ms: number;
  /** Of the last event, as far as this process knows. */
  #seq: number;
  #last_id: string;

  constructor(options: {
    readonly lease: Lease;
    readonly token: string;
    readonly takeovers: readonly Takeover[];
    readonly seal: Seal | undefined;
    readonly base: number;
    readonly kept_at_ms: number;
    readonly rewritable_bytes: number;
  }) {
    this.lease = options.lease;
    this.token = options.token;
    this.takeovers = options.takeovers;
    this.seal = options.seal;
    this.kept_at_ms = options.kept_at_ms;
    this.#rewritable_bytes = options.rewritable_bytes;
    this.#sound_ms = options.kept_at_ms;
    this.#base = options.base;
    this.#seq = options.base;
    this.#last_id = openingId(options.lease.epoch);
  }

  get seq(): number {
    return this.#seq;
  }

  get last_id(): string {
    return this.#last_id;
  }

  get end_id(): string {
    return endId(this.lease.epoch);
  }

  wrote(seq: number): void {
    this.#seq = seq;
    this.#last_id = recordId(this.lease.epoch, seq);
  }

  /** Keeps entries that are about to be written, so that they can be written again if Redis loses them. */
  keep(entries: readonly string[]): void {
    // Of a call whose answer was lost, they are kept already.
    if (!this.#isConfirmed) {
      const again = this.#written.findLastIndex((entry) => idOf(entry) === idOf(entries[0]));
      if (again >= 0) this.#drop(this.#written.splice(again));
    }
    this.#isConfirmed = false;
    for (const entry of entries) {
      this.#written.push(entry);
      this.#written_bytes += Buffer.byteLength(entry);
    }
    while (this.#written_bytes > this.#rewritable_bytes) {
      this.#drop(this.#written.splice(0, 1));
      this.#isWhole = false;
    }
  }

  /**
   * What has to be written behind `last_id`, the last entry there is, so that the log is again what was acknowledged.
   * Undefined where another one has written to it, nothing is missing, or too much is. Of a takeover, the opening is never
   * written again: the holder before it may write already. Nor is a run that may have been purged, which it may have been if
   * Redis was there all the time: `fault_ms` is when it was last away. Nor is an opening that Redis may never have had.
   */
  lostSince([last_id, token]: Mismatch, fault_ms: number): Lost | undefined {
    const isReopened = last_id === '' && this.opening_line !== undefined && fault_ms >= this.#sound_ms;
    if (!isReopened && token !== this.token) return undefined;
    const isFromStart = isReopened || last_id === openingId(this.lease.epoch);
    const before = this.#written.findIndex((entry) => idOf(entry) === last_id);
    if (isFromStart ? !this.#isWhole : before < 0) return undefined;
    const end = this.#written.findIndex((entry) => idOf(entry) === this.#last_id) + 1;
    const entries = this.#written.slice(isFromStart ? 0 : before + 1, end);
    if (isReopened) return { opening_line: this.opening_line, entries };
    return entries.length > 0 ? { entries } : undefined;
  }

  /**
   * Takes in that the log ends otherwise than was thought. Returns when what was stored under this lease is only
   * more; throws a {@link StaleLeaseError} or a {@link JournalGapError} otherwise.
   */
  correct([last_id, token]: Mismatch): void {
    const { run, epoch } = this.lease;
    const last = parseId(last_id);
    if (last_id !== '' && last.epoch > epoch) throw this.fenced();
    // The takeover is lost and the run is not: to the holder before it, the log ends as it should.
    if (token === '' && epoch > 1 && last_id !== '') throw this.fenced();
    if (token === '') throw new JournalGapError(run, 'the store has lost the run, or this lease of it');
    if (token !== this.token) throw this.fenced();
    if (last.kind === 'end') {
      this.state = 'finished';
      return;
    }
    if (last.kind === 'record' && last.seq > this.#seq) {
      this.wrote(last.seq);
      return;
    }
    throw new LostTailError(this, last.kind === 'record' ? last.seq : this.#base, last_id);
  }

  /** Redis has everything that was acknowledged until `now_ms`. */
  confirm(now_ms: number): void {
    this.#sound_ms = now_ms;
    this.#isConfirmed = true;
  }

  /** Takes the shorter log for what it is. Never before something is appended: it would not follow. */
  accept({ stored_seq, last_id }: LostTailError): void {
    this.#seq = stored_seq;
    this.#last_id = last_id;
  }

  fenced(): StaleLeaseError {
    this.state = 'fenced';
    return new StaleLeaseError(this.lease);
  }

  #drop(entries: readonly string[]): void {
    for (const entry of entries) this.#written_bytes -= Buffer.byteLength(entry);
  }
}

const idOf = (entry = ''): string => entry.slice(0, entry.indexOf(' '));

export interface Lost {
  /** Where the opening is lost as well. */
  readonly opening_line?: string | undefined;
  readonly entries: readonly string[];
}

/**
 * Redis has lost what it had said was stored, and more than can be written again: it was restarted, or a replica took over that
 * was behind.
 */
export class LostTailError extends JournalGapError {
  readonly stored_seq: number;
  readonly last_id: string;

  constructor({ lease, seq }: RedisLease, stored_seq: number, last_id: string) {
    super(lease.run, `the store has lost the events after ${Math.max(stored_seq, 0)}, up to ${seq}`);
    this.stored_seq = stored_seq;
    this.last_id = last_id;
  }
}
