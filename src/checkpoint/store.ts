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

/** How many signs of life a replica gives while a lease lasts. */
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

/** What is wrong with a stored run, and after which record. */
export interface Damage {
  /** 0-based position, among all stored records of the run, of the first one that cannot be trusted. */
  readonly record: number;
  /** Ordinal of the last event before it, after which the run continues. */
  readonly seq: number;
  /** Names the missing events, where they are known. */
  readonly reason: string;
}

/** The cause of a run that was cancelled because its client left, which is not a request to cancel it. */
export const CLIENT_LEFT = 'client_left';

/** How a run ended, and when. */
export interface RunEnd {
  readonly status: FinalStatus;
  readonly at_ms: number;
  /** What kept it from being complete: a cause of `interrupts/`, why recovery was given up, or {@link CLIENT_LEFT}. */
  readonly cause?: string;
}

/** The same, before the time is known. */
export type JournalEnd = Omit<RunEnd, 'at_ms'>;

/**
 * The replica that delivers a running run. `alive`: it gave a sign of life `silent_ms` ago. `lost`: it has given none
 * for longer than a lease lasts. `released`: there is none, because the last holder has handed the run over.
 */
export type Holder =
  | { readonly state: 'alive'; readonly silent_ms: number }
  | { readonly state: 'lost' }
  | { readonly state: 'released' };

/** The beginning of a later epoch. */
export interface Takeover {
  /** The last event before it: a takeover without progress repeats that of the one before. */
  readonly seq: number;
  /** Distinguishes it from another one that opened the same epoch, in a store that may forget. Hexadecimal. */
  readonly mark?: string;
}

export interface StoredRun {
  /** Never `complete` when the journal is damaged. */
  readonly status: RunStatus;
  /** Present once the run is finished. */
  readonly end?: RunEnd;
  /** The latest epoch: the `after` of {@link Store.acquire} that takes the run over. */
  readonly epoch: number;
  /** Of a finished run, `released`. */
  readonly holder: Holder;
  /** How each epoch after the first began. */
  readonly takeovers: readonly Takeover[];
  /** Ordinal of the last stored event: a cursor above it is ahead of the checkpoint. 0 when there is none. */
  readonly seq: number;
  /** Valid records in order. Reading stops at the first bad one. */
  readonly records: readonly JournalRecord[];
  /** What was wrong after the last valid record, when something was. */
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
  /** Of what has a header: the append that stores it enters the run, and does not fail when that fails. */
  readonly index: RunIndex;
  /**
   * Takes the right to append. `after` is the epoch this one follows: 0, the default, makes a new run; the latest
   * epoch of a known run takes it over, and fences the lease of that epoch: what the store has acknowledged to its holder
   * stays, later appends of that holder are refused. Of several callers that follow the same epoch exactly one succeeds.
   *
   * The lease counts as alive while this store is open and its replica gives signs of life, which the store sees to.
   * It shows others when to take over; it does not prevent them.
   *
   * Rejects with {@link AcquireRefusedError}: `taken` when `after` is not the latest epoch, `finished`, `foreign`
   * (also for an unknown run with `after` above 0), `invalid_id`.
   */
  acquire(run: RunId, owner: Owner, after?: number): Promise<Lease>;
  /**
   * Opens the epoch after the latest one, `after`, for a replica that still delivers the run and has lost `lease`, or never
   * had the answer that it was given. Other than {@link acquire}, it does not stop at the end that a salvage has written.
   * Under later leases, nothing may have been appended. `mark`: of the new takeover.
   *
   * Rejects with {@link AcquireRefusedError} as {@link acquire} does, and where what was stored under `lease` is gone. Only
   * stores have it that one replica can be cut off from, while others reach them.
   */
  takeBack?(lease: Lease, after: number, mark: string): Promise<Lease>;
  /**
   * Appends in order; resolves with the last sequence number once the records are as durable as the store promises.
   * Records already stored are skipped, so a batch whose fate is unknown may be sent again as it was. A gap is an error.
   */
  append(lease: Lease, records: readonly JournalRecord[]): Promise<number>;
  /** Seals the run. Finishing twice keeps the first end. */
  finish(lease: Lease, end: RunEnd): Promise<void>;
  /**
   * Forgets a finished run: nothing of it can be read any more. Nothing happens to a running run, nor for a stranger;
   * purging twice is no error.
   */
  purge(run: RunId, owner: Owner): Promise<void>;
  /** Hands a running run over: its holder becomes `released`, and this lease is fenced. Releasing twice is no error. */
  release(lease: Lease): Promise<void>;
  /**
   * Records with events after the cursor `from`; the first of them may begin before it. 0 gives the whole run, its
   * header included. `null` for an unknown run and for a foreign one alike.
   */
  read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null>;
  /** At most `limit` orphans, in no particular order. For the sweep that salvages them, never for a client. */
  orphans(limit: number): Promise<readonly Orphan[]>;
  /** Rejects with a reason while the store cannot be used; `/readyz` asks. */
  check(): Promise<void>;
  /** The leases held through this store end with it: their runs are `lost` at once, or when the lease runs out. */
  close(): Promise<void>;
}

const RUN_ID = /^run_[A-Za-z0-9_-]{22,64}$/;

/** True for an id this server could have minted. Run ids come from clients too, and name files and keys. */
export const isRunId = (value: string): value is RunId => RUN_ID.test(value);

/** In constant time, so that an owner cannot be found out digit by digit. `stored` may be anything. */
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

/** Thrown by `acquire`. To a client `foreign` and `invalid_id` are the same as unknown. */
export class AcquireRefusedError extends Error {
  override readonly name = 'AcquireRefusedError';
  readonly reason: 'foreign' | 'finished' | 'invalid_id' | 'taken';

  constructor(run: string, reason: AcquireRefusedError['reason']) {
    super(`run ${JSON.stringify(run)} cannot be acquired: ${reason}`);
    this.reason = reason;
  }
}

/** Thrown by `append` when the records do not follow the last one stored. */
export class JournalGapError extends Error {
  override readonly name = 'JournalGapError';

  constructor(run: RunId, reason: string) {
    super(`cannot append to ${run}: ${reason}`);
  }
}

/** Part of a journal was given up because the store failed for too long. */
export class JournalLostError extends Error {
  override readonly name = 'JournalLostError';

  constructor(run: string, stored_seq: number) {
    super(`the store failed for too long: the journal of ${run} ends at event ${stored_seq}`);
  }
}

/** Part of a stored run cannot be trusted; what lies before it is used. */
export class DamagedRunError extends Error {
  override readonly name = 'DamagedRunError';

  constructor(run: RunId, { record, seq, reason }: Damage) {
    super(`${run} is damaged in record ${record} (${reason}); it continues after event ${seq}`);
  }
}

/** Thrown while a store is opened: the configuration has to change before the process can serve. */
export class StoreConfigurationError extends Error {
  override readonly name = 'StoreConfigurationError';
}
