import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isAfter, recordsToAppend } from '../append-order.ts';
import { DamageReports } from '../damage-reports.ts';
import type { JournalRecord } from '../journal.ts';
import { NoteReader } from '../note-codec.ts';
import type { Notes } from '../notes.ts';
import { encodeRecord } from '../record-codec.ts';
import { isSameOwner } from '../same-owner.ts';
import type { Seal } from '../seal.ts';
import {
  AcquireRefusedError,
  isRunId,
  type Lease,
  type Orphan,
  type Owner,
  type RunEnd,
  type RunId,
  StaleLeaseError,
  type Store,
  StoreConfigurationError,
  type StoredRun,
} from '../store.ts';
import { FileHeartbeat } from './file-heartbeat.ts';
import { interpretRun } from './file-interpretation.ts';
import type { Claim } from './file-log.ts';
import { INDEX_NAME, NOTES_NAME } from './file-names.ts';
import { FileNoteBox } from './file-note-box.ts';
import { readFinishedOpening, readHolder, readRun } from './file-reader.ts';
import { FileStoreError } from './file-refusal.ts';
import { FileRunList } from './file-run-list.ts';
import type { FsyncPolicy } from './file-segments.ts';
import { FileWriter } from './file-writer.ts';
import { Turns } from './turns.ts';

const REPLICA_BYTES = 16;
/** A disk that has not answered for this long makes {@link FileStore.check} reject. */
const ANSWER_MAX_MS = 5000;

export interface FileStoreOptions {
  /** Created when it does not exist. */
  readonly dir: string;
  readonly fsync: FsyncPolicy;
  /** How long a run is kept after its last append. */
  readonly ttl_ms: number;
  /** The same of a complete run, where that is less. */
  readonly complete_ttl_ms?: number;
  /** Without a sign of life for this long, another process counts as dead. */
  readonly lease_ms: number;
  /** Encrypts records and notes. Without it they are readable by whoever can read the files. */
  readonly seal?: Seal | undefined;
  /** Damaged runs that were read or taken over, notes that cannot be read, and failures of the store's own upkeep. */
  onError(error: Error): void;
}

/** A lease as this process holds it. */
interface Held {
  readonly slot: number;
  readonly epoch: number;
  readonly seal: Seal | undefined;
  stored_seq: number;
  /** One call at a time, so that the next one knows what the last one stored. */
  readonly turns: Turns;
}

/**
 * Runs as files in one directory, private to the user who runs the process. Appends survive the death of the process
 * as soon as they resolve. Several processes may share the directory if its file system is local to all of them.
 */
export class FileStore implements Store {
  readonly name = 'file';
  readonly notes: Notes;
  readonly index: FileRunList;
  readonly #options: FileStoreOptions;
  readonly #heartbeat: FileHeartbeat;
  readonly #writer: FileWriter;
  readonly #damages: DamageReports;
  readonly #leases = new Map<RunId, Held>();
  #slots = 0;

  /** Throws a {@link StoreConfigurationError} when the directory cannot be used. */
  constructor(options: FileStoreOptions) {
    const { dir, fsync, ttl_ms, complete_ttl_ms = ttl_ms, lease_ms, seal, onError } = options;
    const replica = randomBytes(REPLICA_BYTES).toString('hex');
    this.#options = options;
    this.#heartbeat = prepareDirectory(options, replica);
    const sealing_keys = seal?.keys ?? [];
    const kept = { ttl_ms, complete_ttl_ms };
    this.#writer = new FileWriter({ dir, ...kept, lease_ms, fsync, replica, sealing_keys }, onError);
    this.#damages = new DamageReports(onError);
    const reader = new NoteReader(seal, onError);
    this.notes = new FileNoteBox({ writer: this.#writer, seal, reader });
    this.index = new FileRunList({ writer: this.#writer, seal });
  }

  async acquire(run: RunId, owner: Owner, after = 0): Promise<Lease> {
    if (!isRunId(run)) throw new AcquireRefusedError(run, 'invalid_id');
    const slot = ++this.#slots;
    const { seq, damage } = await this.#claim(slot, run, owner, after);
    if (damage) this.#damages.rewound(run, damage);
    const fenced = this.#leases.get(run);
    if (fenced) void this.#writer.request('forget', { slot: fenced.slot }).catch(ignore);
    const epoch = after + 1;
    const seal = this.#options.seal?.for(run);
    this.#leases.set(run, { slot, epoch, seal, stored_seq: seq, turns: new Turns() });
    return { run, owner, epoch };
  }

  append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    const header = records[0]?.header;
    if (header) this.index.add(lease.owner, lease.run, header);
    return new Promise((resolve, reject) => {
      const held = this.#held(lease);
      if (!held) reject(new StaleLeaseError(lease));
      else held.turns.take(() => this.#write(lease, held, records, resolve, reject));
    });
  }

  async finish(lease: Lease, end: RunEnd): Promise<void> {
    const isDone = await this.#conclude(lease, async ({ slot, stored_seq }) => {
      const damage = await this.#writer.request('finish', { slot, end, seq: stored_seq });
      if (damage) this.#damages.rewound(lease.run, damage);
    });
    // The same lease may finish twice: its answer may have been lost, or somebody else have completed it.
    if (isDone) return;
    const opening = await readFinishedOpening(this.#options.dir, lease.run);
    if (opening?.epoch !== lease.epoch || !isSameOwner(opening.owner, lease.owner))
      throw new StaleLeaseError(lease);
  }

  async purge(run: RunId, owner: Owner): Promise<void> {
    if (isRunId(run)) await this.#writer.request('purge', { run, owner });
  }

  async release(lease: Lease): Promise<void> {
    await this.#conclude(lease, ({ slot, stored_seq }) =>
      this.#writer.request('release', { slot, seq: stored_seq }),
    );
  }

  async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    const { dir, lease_ms, seal } = this.#options;
    const found = isRunId(run) ? await readRun(dir, run, seal, from) : undefined;
    if (!found) return null;
    const {
      owner: stored_owner,
      stored,
      damage,
    } = interpretRun(found, await readHolder(dir, run, found, lease_ms));
    if (damage) this.#damages.found(run, damage);
    if (!stored || !isSameOwner(stored_owner, owner)) return null;
    return { ...stored, records: stored.records.filter((record) => isAfter(record, from)) };
  }

  orphans(limit: number): Promise<readonly Orphan[]> {
    return this.#writer.request('orphans', { limit });
  }

  async check(): Promise<void> {
    if (this.#writer.stalled_ms > ANSWER_MAX_MS) {
      throw new Error(`${this.#options.dir} has not answered a write for ${ANSWER_MAX_MS} ms`);
    }
    await this.#writer.request('check', undefined);
  }

  /** Resolves once everything appended so far is written and the writing thread has ended. */
  async close(): Promise<void> {
    await this.#writer.close();
    await this.#heartbeat.close();
  }

  async #claim(slot: number, run: RunId, owner: Owner, after: number): Promise<Claim> {
    try {
      return await this.#writer.request('acquire', { slot, run, owner, after });
    } catch (error) {
      const code = error instanceof FileStoreError ? error.code : undefined;
      if (code !== 'foreign' && code !== 'finished' && code !== 'taken') throw error;
      throw new AcquireRefusedError(run, code);
    }
  }

  #write(
    lease: Lease,
    held: Held,
    records: readonly JournalRecord[],
    resolve: (seq: number) => void,
    reject: (error: unknown) => void,
  ): void {
    const settle = (seq: number, error?: unknown) => {
      if (error) {
        reject(this.#translate(error, lease));
      } else {
        held.stored_seq = seq;
        resolve(seq);
      }
      held.turns.end();
    };
    try {
      if (this.#held(lease) !== held) throw new StaleLeaseError(lease);
      const fresh = recordsToAppend(lease.run, held.stored_seq, records);
      const seq = fresh.at(-1)?.seq;
      if (seq === undefined) {
        settle(held.stored_seq);
        return;
      }
      const lines = fresh.map((record) => encodeRecord(record, held.seal));
      this.#writer.append(held.slot, lines.join(''), (error) => settle(seq, error));
    } catch (error) {
      settle(held.stored_seq, error);
    }
  }

  /** Gives the lease up once everything before is stored. False when it is not held any more. */
  async #conclude(lease: Lease, conclude: (held: Held) => Promise<void>): Promise<boolean> {
    const held = this.#held(lease);
    if (!held) return false;
    await new Promise<void>((resolve) => held.turns.take(resolve));
    try {
      if (this.#held(lease) !== held) return false;
      await conclude(held);
      this.#forget(lease);
      return true;
    } catch (error) {
      if (this.#translate(error, lease) instanceof StaleLeaseError) return false;
      throw error;
    } finally {
      held.turns.end();
    }
  }

  #held(lease: Lease): Held | undefined {
    const held = this.#leases.get(lease.run);
    return held?.epoch === lease.epoch ? held : undefined;
  }

  #translate(error: unknown, lease: Lease): unknown {
    if (!(error instanceof FileStoreError) || error.code !== 'stale') return error;
    this.#forget(lease);
    return new StaleLeaseError(lease);
  }

  #forget(lease: Lease): void {
    if (this.#held(lease)) this.#leases.delete(lease.run);
  }
}

/** Making files proves that files can be made here, which the mode of the directory does not. */
function prepareDirectory(options: FileStoreOptions, replica: string): FileHeartbeat {
  const { dir, lease_ms, onError } = options;
  try {
    for (const name of [NOTES_NAME, INDEX_NAME]) mkdirSync(join(dir, name), { recursive: true, mode: 0o700 });
    return new FileHeartbeat({ dir, replica, lease_ms, onError });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new StoreConfigurationError(
      `checkpoint.store: the directory ${dir} cannot be used (${message}); ` +
        'make it writable for this user or configure another directory',
      { cause: error },
    );
  }
}

const ignore = () => {};
