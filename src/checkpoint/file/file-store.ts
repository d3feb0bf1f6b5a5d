import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { endTurn, isAfter, recordsToAppend, type Turns, takeTurn } from '../append-order.ts';
import { DamageReports } from '../damage-reports.ts';
import type { JournalRecord } from '../journal.ts';
import { NoteReader } from '../note-codec.ts';
import type { Notes } from '../notes.ts';
import { encodeRecordBody } from '../record-codec.ts';
import { entryOf } from '../run-index.ts';
import { epochSeal, type Seal } from '../seal.ts';
import {
  AcquireRefusedError,
  type Damage,
  isRunId,
  isSameOwner,
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
import { admitDirectory } from './admit-directory.ts';
import { FileNotes } from './file-notes.ts';
import { FileRunList } from './file-run-list.ts';
import { Heartbeat } from './heartbeat.ts';
import { FileStoreError } from './refusal.ts';
import { interpretRun } from './run-image.ts';
import { Writer } from './writer.ts';

const REPLICA_BYTES = 16;
/** {@link FileStore.check} rejects if the disk hasn't answered for this long. */
const ANSWER_MAX_MS = 5000;

export interface FileStoreOptions {
  /** Created if it doesn't exist. */
  readonly dir: string;
  /** How long a run is kept after its last append. */
  readonly ttl_ms: number;
  /** How long a complete run is kept, if shorter. */
  readonly complete_ttl_ms?: number;
  /** Another process counts as dead after this long without a sign of life. */
  readonly lease_ms: number;
  /** Size at which the log starts a new segment. Default 16 MiB. */
  readonly segment_bytes?: number | undefined;
  /** Encrypts or proves stored data. Without a seal, the files are trusted as they are. */
  readonly seal?: Seal | undefined;
  /** Receives damaged runs that were read or taken over, unreadable notes, and failures of the store's upkeep. */
  onError(error: Error): void;
}

/** A lease held by this process. Calls are made one at a time, so that each knows what the previous one stored. */
interface Held extends Turns {
  readonly epoch: number;
  stored_seq: number;
}

/**
 * Stores runs in one log in one directory, private to the process's user. Appends that have resolved survive the death
 * of the process. Several processes may share the directory if its file system is local to all of them.
 */
export class FileStore implements Store {
  readonly name = 'file';
  readonly notes: Notes;
  readonly index: FileRunList;
  readonly #options: FileStoreOptions;
  readonly #heartbeat: Heartbeat;
  readonly #writer: Writer;
  readonly #damages: DamageReports;
  readonly #leases = new Map<RunId, Held>();

  /** Throws a {@link StoreConfigurationError} if the directory can't be used. */
  constructor(options: FileStoreOptions) {
    const { dir, ttl_ms, complete_ttl_ms = ttl_ms, lease_ms, seal, segment_bytes, onError } = options;
    const replica = randomBytes(REPLICA_BYTES).toString('hex');
    this.#options = options;
    this.#heartbeat = makeHeartbeat(options, replica);
    const kept = { ttl_ms, complete_ttl_ms };
    this.#writer = new Writer(
      { dir, ...kept, lease_ms, replica, seal: seal?.material, segment_bytes },
      onError,
    );
    this.#damages = new DamageReports(onError);
    const reader = new NoteReader(seal, onError);
    this.notes = new FileNotes({ writer: this.#writer, seal, reader });
    this.index = new FileRunList({ writer: this.#writer, seal });
  }

  /** Resolves once the log was read; nothing is stored before that. Rejects with a {@link StoreConfigurationError}. */
  async start(): Promise<void> {
    try {
      await this.#writer.opened;
    } catch (error) {
      throw unusable(this.#options.dir, error);
    }
  }

  async acquire(run: RunId, owner: Owner, after = 0): Promise<Lease> {
    if (!isRunId(run)) throw new AcquireRefusedError(run, 'invalid_id');
    const { seq, damage } = await this.#claim(run, owner, after);
    if (damage) this.#damages.rewound(run, damage);
    const epoch = after + 1;
    this.#leases.set(run, { epoch, stored_seq: seq, isTaken: false, waiting: undefined });
    return { run, owner, epoch };
  }

  append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    return new Promise((resolve, reject) => {
      const held = this.#held(lease);
      if (!held) reject(new StaleLeaseError(lease));
      else takeTurn(held, () => this.#write(lease, held, records, resolve, reject));
    });
  }

  async finish(lease: Lease, end: RunEnd): Promise<void> {
    const isDone = await this.#conclude(lease, (seq) => this.#sealRun(lease, end, seq));
    // A lease may finish twice, because the first answer may have been lost.
    if (isDone) return;
    await this.#sealRun(lease, end, 0).catch((error: unknown) => {
      throw this.#translate(error, lease);
    });
  }

  async purge(run: RunId, owner: Owner): Promise<void> {
    if (isRunId(run)) await this.#writer.request('purge', { run, owner });
  }

  async release(lease: Lease): Promise<void> {
    const { run, epoch } = lease;
    await this.#conclude(lease, async (seq) => this.#writer.request('release', { run, epoch, seq }));
  }

  async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    const found = isRunId(run) ? await this.#writer.request('read', { run }) : undefined;
    if (!found) return null;
    // A buffer arrives from the other thread as a plain Uint8Array.
    const lines = Buffer.from(found.lines.buffer, found.lines.byteOffset, found.lines.byteLength);
    const interpretation = interpretRun(run, { ...found, lines }, this.#options.seal, from);
    const { stored, damage } = interpretation;
    if (damage) this.#damages.found(run, damage);
    if (!stored || !isSameOwner(interpretation.owner, owner)) return null;
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

  /** Resolves once everything appended so far is written and the writer thread has ended. */
  async close(): Promise<void> {
    await this.#writer.close();
    await this.#heartbeat.close();
  }

  async #claim(run: RunId, owner: Owner, after: number) {
    try {
      return await this.#writer.request('acquire', { run, owner, after });
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
    const settle = (seq: number) => {
      held.stored_seq = seq;
      resolve(seq);
      endTurn(held);
    };
    const refuse = (error: unknown) => {
      reject(this.#translate(error, lease));
      endTurn(held);
    };
    try {
      if (this.#held(lease) !== held) throw new StaleLeaseError(lease);
      const fresh = recordsToAppend(lease.run, held.stored_seq, records);
      const seq = fresh.at(-1)?.seq;
      if (seq === undefined) {
        settle(held.stored_seq);
        return;
      }
      const { run, owner, epoch } = lease;
      const own_seal = epochSeal(this.#options.seal, run, owner, epoch);
      const bodies = fresh.map((record) => encodeRecordBody(record, own_seal));
      const header = fresh[0]?.header;
      const entry = header && entryOf(owner, run, header, this.#options.seal);
      this.#writer.send('append', [run, epoch, entry, ...bodies], () => settle(seq), refuse);
    } catch (error) {
      refuse(error);
    }
  }

  async #sealRun({ run, owner, epoch }: Lease, end: RunEnd, seq: number): Promise<void> {
    const damage: Damage | undefined = await this.#writer.request('finish', { run, owner, epoch, end, seq });
    if (damage) this.#damages.rewound(run, damage);
  }

  /** Gives the lease up once all earlier calls are done. Resolves with false if it is no longer held. */
  async #conclude(lease: Lease, conclude: (stored_seq: number) => Promise<void>): Promise<boolean> {
    const held = this.#held(lease);
    if (!held) return false;
    await new Promise<void>((resolve) => takeTurn(held, resolve));
    try {
      if (this.#held(lease) !== held) return false;
      await conclude(held.stored_seq);
      this.#forget(lease);
      return true;
    } catch (error) {
      if (this.#translate(error, lease) instanceof StaleLeaseError) return false;
      throw error;
    } finally {
      endTurn(held);
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

/** Creates the store's directory if necessary. Throws a {@link StoreConfigurationError}. */
export function prepareDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    admitDirectory(dir);
  } catch (error) {
    if (error instanceof StoreConfigurationError) throw error;
    throw unusable(dir, error);
  }
}

/** Creating a file proves that the directory is writable, which its mode doesn't. */
function makeHeartbeat({ dir, lease_ms, onError }: FileStoreOptions, replica: string): Heartbeat {
  prepareDirectory(dir);
  try {
    return new Heartbeat({ dir, replica, lease_ms, onError });
  } catch (error) {
    if (error instanceof StoreConfigurationError) throw error;
    throw unusable(dir, error);
  }
}

function unusable(dir: string, error: unknown): StoreConfigurationError {
  const message = error instanceof Error ? error.message : String(error);
  return new StoreConfigurationError(
    `checkpoint.store: the directory ${dir} cannot be used (${message}); ` +
      'make it writable for this user or configure another directory',
    { cause: error },
  );
}
