import { timingSafeEqual } from 'node:crypto';
import type { JournalRecord } from './journal.ts';
import type { Notes } from './notes.ts';
import type { RunIndex } from './run-index.ts';

/** `run_` and 128 random bits in base64url; never reused. */
export type RunId = `run_${string}`;
/** HMAC(server secret, client credential), hex. Required by every read, so that forgetting it is a type error. */
export type Owner = string & { readonly __owner: unique symbol };

/** The right to append to one run. A successor holds a higher epoch; the store refuses every lower one. */
export interface Lease {
  readonly run: RunId;
  readonly owner: Owner;
  readonly epoch: number;
}

/** Signs of life that a replica gives during one lease. */
export const BEATS_PER_LEASE = 3;

export const FINAL_STATUSES = [
  'complete',
  'failed',
  'cancelled',
  'recovered_from_partial',
  'timeout_partial',
] as const;
export type FinalStatus = (typeof FINAL_STATUSES)[number];
export type RunStatus = 'running' | FinalStatus;

/** What is wrong with a stored run, and where. */
export interface Damage {
  /** 0-based position of the first untrusted record among all stored records of the run. */
  readonly record: number;
  /** Ordinal of the last event before the damage, after which the run continues. */
  readonly seq: number;
  /** Names the missing events, if known. */
  readonly reason: string;
}

/** The cause of a run that was cancelled because its client disconnected rather than asked for it. */
export const CLIENT_LEFT = 'client_left';

/** How a run ended, and when. */
export interface RunEnd {
  readonly status: FinalStatus;
  readonly at_ms: number;
  /** Why the run isn't complete: a cause of `interrupts/`, the reason recovery was given up, or {@link CLIENT_LEFT}. */
  readonly cause?: string;
}

/** A {@link RunEnd} before its time is known. */
export type JournalEnd = Omit<RunEnd, 'at_ms'>;

/**
 * The replica that delivers a running run. `alive`: it gave a sign of life `silent_ms` ago. `lost`: it has given none
 * for longer than a lease. `released`: there is none, because the last holder handed the run over.
 */
export type Holder =
  | { readonly state: 'alive'; readonly silent_ms: number }
  | { readonly state: 'lost' }
  | { readonly state: 'released' };

/** The start of a later epoch. */
export interface Takeover {
  /** The last event before it. A takeover without progress repeats the previous one's value. */
  readonly seq: number;
  /** Distinguishes it from another takeover that opened the same epoch, in a store that may lose one. Hexadecimal. */
  readonly mark?: string;
}

export interface StoredRun {
  /** Never `complete` if the journal is damaged. */
  readonly status: RunStatus;
  /** Present once the run is finished. */
  readonly end?: RunEnd;
  /** The latest epoch. Pass it as `after` to {@link Store.acquire} to take the run over. */
  readonly epoch: number;
  /** `released` for a finished run. */
  readonly holder: Holder;
  /** How each epoch after the first began. */
  readonly takeovers: readonly Takeover[];
  /** Ordinal of the last stored event, 0 if there is none. A cursor above it is ahead of the checkpoint. */
  readonly seq: number;
  /** Valid records in order. Reading stops at the first bad one. */
  readonly records: readonly JournalRecord[];
  /** What is wrong after the last valid record, if anything. */
  readonly damage?: Damage;
}

/** A running run without a holder: its holder was lost, or has released it. */
export interface Orphan {
  readonly run: RunId;
  readonly owner: Owner;
  readonly epoch: number;
}

/** One ordered log per run. Implementations: memory, file, redis. */
export interface Store {
  readonly name: 'memory' | 'file' | 'redis';
  readonly notes: Notes;
  /** The append that stores a run's header also enters the run here, and doesn't fail if that fails. */
  readonly index: RunIndex;
  /**
   * Grants the right to append. `after` is the epoch this one follows: 0, the default, creates a new run; a run's
   * latest epoch takes the run over and fences its current lease. Everything acknowledged to the previous holder stays,
   * and its later appends are refused. Of several callers that follow the same epoch, exactly one succeeds.
   *
   * The lease counts as alive while this store is open and its replica gives signs of life, which the store takes care
   * of. It tells others when to take over; it doesn't prevent them.
   *
   * Rejects with {@link AcquireRefusedError}: `taken` if `after` isn't the latest epoch, `finished`, `foreign` (also
   * for an unknown run with `after` above 0), `invalid_id`.
   */
  acquire(run: RunId, owner: Owner, after?: number): Promise<Lease>;
  /**
   * Opens the epoch after the latest one, `after`, for a replica that still delivers the run but has lost `lease` or
   * never received the answer that granted it. Unlike {@link acquire}, it ignores an end written by a salvage. Later
   * leases must not have appended anything. `mark`: of the new takeover.
   *
   * Rejects with {@link AcquireRefusedError} like {@link acquire}, and if what was stored under `lease` is gone. Only
   * implemented by stores that one replica can be cut off from while others still reach them.
   */
  takeBack?(lease: Lease, after: number, mark: string): Promise<Lease>;
  /**
   * Appends in order. Resolves with the last sequence number once the records are as durable as the store promises.
   * Already stored records are skipped, so a batch with an unknown fate may be sent again unchanged. A gap is an error.
   */
  append(lease: Lease, records: readonly JournalRecord[]): Promise<number>;
  /** Seals the run. Finishing twice keeps the first end. */
  finish(lease: Lease, end: RunEnd): Promise<void>;
  /**
   * Deletes a finished run, so that nothing of it can be read any more. Does nothing to a running run or for another
   * owner. Purging twice is no error.
   */
  purge(run: RunId, owner: Owner): Promise<void>;
  /** Hands a running run over: its holder becomes `released`, and this lease is fenced. Releasing twice is no error. */
  release(lease: Lease): Promise<void>;
  /**
   * Records with events after the cursor `from`; the first may begin before it. 0 returns the whole run, including its
   * header. `null` for an unknown run and for another owner's alike.
   */
  read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null>;
  /** At most `limit` orphans, in no particular order. For the sweep that salvages them, never for a client. */
  orphans(limit: number): Promise<readonly Orphan[]>;
  /** Rejects with a reason while the store is unusable. Used by `/readyz`. */
  check(): Promise<void>;
  /** Ends all leases held through this store: their runs are `lost` at once, or when the lease expires. */
  close(): Promise<void>;
}

const RUN_ID = /^run_[A-Za-z0-9_-]{22,64}$/;

/** True for an id that this server could have created. Run ids also come from clients, and name files and keys. */
export const isRunId = (value: string): value is RunId => RUN_ID.test(value);

/** Compares in constant time, so that an owner can't be found out digit by digit. `stored` may be any string. */
export function isSameOwner(stored: string, given: Owner): boolean {
  const [left, right] = [Buffer.from(stored), Buffer.from(given)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Thrown by `append` and `finish` when a higher epoch exists. */
export class StaleLeaseError extends Error {
  override readonly name = 'StaleLeaseError';

  constructor(lease: Lease) {
    super(`epoch ${lease.epoch} of ${lease.run} was superseded; another lease may append now`);
  }
}

/** Thrown by `acquire`. Clients can't tell `foreign` and `invalid_id` from an unknown run. */
export class AcquireRefusedError extends Error {
  override readonly name = 'AcquireRefusedError';
  readonly reason: 'foreign' | 'finished' | 'invalid_id' | 'taken';

  constructor(run: string, reason: AcquireRefusedError['reason']) {
    super(`run ${JSON.stringify(run)} cannot be acquired: ${reason}`);
    this.reason = reason;
  }
}

/** Thrown by `append` if the records don't follow the last stored one. */
export class JournalGapError extends Error {
  override readonly name = 'JournalGapError';

  constructor(run: RunId, reason: string) {
    super(`cannot append to ${run}: ${reason}`);
  }
}

/** Part of a journal was dropped because the store failed for too long. */
export class JournalLostError extends Error {
  override readonly name = 'JournalLostError';

  constructor(run: string, stored_seq: number) {
    super(`the store failed for too long: the journal of ${run} ends at event ${stored_seq}`);
  }
}

/** Part of a stored run can't be trusted. Everything before it is used. */
export class DamagedRunError extends Error {
  override readonly name = 'DamagedRunError';

  constructor(run: RunId, { record, seq, reason }: Damage) {
    super(`${run} is damaged in record ${record} (${reason}); it continues after event ${seq}`);
  }
}

/** Thrown while opening a store: the configuration must change before the process can serve. */
export class StoreConfigurationError extends Error {
  override readonly name = 'StoreConfigurationError';
}
