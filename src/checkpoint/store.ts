import type { JournalRecord } from './journal.ts';

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
  readonly reason: string;
}

export interface StoredRun {
  /** Never `complete` when the journal is damaged. */
  readonly status: RunStatus;
  /** Ordinal of the last stored event: a cursor above it is ahead of the checkpoint. 0 when there is none. */
  readonly seq: number;
  /** Valid records in order. Reading stops at the first bad one. */
  readonly records: readonly JournalRecord[];
  /** What was wrong after the last valid record, when something was. */
  readonly damage?: Damage;
}

/** One ordered log per run. Implementations: memory, file, redis. */
export interface Store {
  readonly name: 'memory' | 'file' | 'redis';
  /**
   * Takes the right to append. An unknown run is created with epoch 1; for a known one the epoch rises by one and
   * every older lease is fenced: what its holder was told is stored stays, whatever it appends later is refused.
   * `ttl_ms`: how long the lease counts as alive without an append. It tells others when to take over; it does not
   * keep them from it.
   * Rejects with {@link AcquireRefusedError} for a foreign, finished or badly named run.
   */
  acquire(run: RunId, owner: Owner, ttl_ms: number): Promise<Lease>;
  /**
   * Appends in order; resolves with the last sequence number once the records are as durable as the store promises.
   * Records already stored are skipped, so a batch whose fate is unknown may be sent again as it was. A gap is an error.
   */
  append(lease: Lease, records: readonly JournalRecord[]): Promise<number>;
  /** Seals the run. Finishing twice keeps the first status. */
  finish(lease: Lease, status: FinalStatus): Promise<void>;
  /**
   * Records with events after the cursor `from`; the first of them may begin before it. 0 gives the whole run, its
   * header included. `null` for an unknown run and for a foreign one alike.
   */
  read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null>;
  /** Rejects with a reason while the store cannot be used; `/readyz` asks. */
  check(): Promise<void>;
  close(): Promise<void>;
}

const RUN_ID = /^run_[A-Za-z0-9_-]{22,64}$/;

/** True for an id this server could have minted. Run ids come from clients too, and name files and keys. */
export const isRunId = (value: string): value is RunId => RUN_ID.test(value);

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
  readonly reason: 'foreign' | 'finished' | 'invalid_id';

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

/** Thrown while a store is opened: the configuration has to change before the process can serve. */
export class StoreConfigurationError extends Error {
  override readonly name = 'StoreConfigurationError';
}
