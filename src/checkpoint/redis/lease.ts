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
  readonly takeovers: readonly Takeover[];
  /** Of this epoch. */
  readonly seal: Seal | undefined;
  isTaken: boolean = false;
  waiting: (() => void)[] | undefined;
  state: 'held' | 'finished' | 'fenced' = 'held';
  /** When the log was last kept from expiring. */
  kept_at_ms: number;
  /** The last event before this epoch. */
  readonly #base: number;
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
  }) {
    this.lease = options.lease;
    this.token = options.token;
    this.takeovers = options.takeovers;
    this.seal = options.seal;
    this.kept_at_ms = options.kept_at_ms;
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

  get opening_id(): string {
    return openingId(this.lease.epoch);
  }

  get end_id(): string {
    return endId(this.lease.epoch);
  }

  wrote(seq: number): void {
    this.#seq = seq;
    this.#last_id = recordId(this.lease.epoch, seq);
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

  /** Takes the shorter log for what it is. Never before something is appended: it would not follow. */
  accept({ stored_seq, last_id }: LostTailError): void {
    this.#seq = stored_seq;
    this.#last_id = last_id;
  }

  fenced(): StaleLeaseError {
    this.state = 'fenced';
    return new StaleLeaseError(this.lease);
  }
}

/** Redis has lost what it had said was stored: it was restarted, or a replica took over that was behind. */
export class LostTailError extends JournalGapError {
  readonly stored_seq: number;
  readonly last_id: string;

  constructor({ lease, seq }: RedisLease, stored_seq: number, last_id: string) {
    super(lease.run, `the store has lost the events after ${Math.max(stored_seq, 0)}, up to ${seq}`);
    this.stored_seq = stored_seq;
    this.last_id = last_id;
  }
}
