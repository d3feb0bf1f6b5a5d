import type { Turns } from '../append-order.ts';
import type { Seal } from '../seal.ts';
import { JournalGapError, type Lease, StaleLeaseError, type Takeover } from '../store.ts';
import { endId, openingId, parseId, recordId } from './log.ts';
import type { Mismatch } from './scripts.ts';

/**
 * A lease as the granting store knows it: the log's expected state if no other writer has touched it. Calls are made
 * one at a time, so that each knows what the previous one stored.
 */
export class RedisLease implements Turns {
  readonly lease: Lease;
  /** Distinguishes this opening of the epoch from a later one after Redis has lost this one. */
  readonly token: string;
  /** The replica's list contains the epoch because of this lease. */
  isListed: boolean = true;
  readonly takeovers: readonly Takeover[];
  /** The seal of this epoch. */
  readonly seal: Seal | undefined;
  isTaken: boolean = false;
  waiting: (() => void)[] | undefined;
  state: 'held' | 'finished' | 'fenced' = 'held';
  /** When the log's expiry was last renewed. */
  kept_at_ms: number;
  /** For a run's first epoch: the line of the opening, once Redis has acknowledged it. */
  opening_line: string | undefined;
  /** The last event before this epoch. */
  readonly #base: number;
  /** The latest entries written under this lease, and their size. */
  #written: string[] = [];
  #written_bytes = 0;
  readonly #rewritable_bytes: number;
  /** False once the oldest entries in `#written` were dropped. */
  #isWhole: boolean = true;
  /** Redis has answered the last write. */
  #isConfirmed: boolean = true;
  /** Redis still had everything that it had acknowledged before this time. */
  #sound_ms: number;
  /** Sequence number of the last event, as far as this process knows. */
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

  /** Remembers entries that are about to be written, so that they can be written again if Redis loses them. */
  keep(entries: readonly string[]): void {
    // Entries of a call whose answer was lost are already remembered.
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
   * What must be written after `last_id`, the log's actual last entry, to restore what was acknowledged. Undefined if
   * another writer has touched the log, nothing is missing, or too much is.
   *
   * The opening itself is restored on three conditions. It is that of the first epoch, because after a takeover the
   * previous holder may be writing again. Redis has acknowledged it. Redis was away (`fault_ms`) since the last
   * confirmation, because otherwise the run may have been purged.
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
   * Adjusts to a log that doesn't end as expected. Returns if merely more was stored under this lease than known;
   * otherwise throws a {@link StaleLeaseError} or a {@link JournalGapError}.
   */
  correct([last_id, token]: Mismatch): void {
    const { run, epoch } = this.lease;
    const last = parseId(last_id);
    if (last_id !== '' && last.epoch > epoch) throw this.fenced();
    // The takeover is lost but the run isn't: from the previous holder's view, the log ends as expected.
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

  /** Accepts the shorter log as it is. Must not be used before an append, which wouldn't follow. */
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
  /** Present if the opening is lost too. */
  readonly opening_line?: string | undefined;
  readonly entries: readonly string[];
}

/**
 * Redis has lost acknowledged entries, more than can be written again: it was restarted, or a replica that lagged
 * behind took over.
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
