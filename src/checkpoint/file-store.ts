import { createHash, timingSafeEqual } from 'node:crypto';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { isAfter, recordsToAppend } from './append-order.ts';
import type { RunImage } from './file-format.ts';
import type { Claim, FsyncPolicy } from './file-log.ts';
import { TAKEOVERS_NAME } from './file-names.ts';
import { readFinishedOpening, readRun } from './file-reader.ts';
import { FileStoreError, FileWriter } from './file-writer.ts';
import type { JournalRecord } from './journal.ts';
import { encodeRecord } from './record-codec.ts';
import type { Damage, FinalStatus, Lease, Owner, RunId, Store, StoredRun } from './store.ts';
import { AcquireRefusedError, isRunId, StaleLeaseError, StoreConfigurationError } from './store.ts';
import { Turns } from './turns.ts';

/** A disk that has not answered for this long makes {@link FileStore.check} reject. */
const ANSWER_MAX_MS = 5000;

export interface FileStoreOptions {
  /** Created when it does not exist. */
  readonly dir: string;
  readonly fsync: FsyncPolicy;
  /** How long a run is kept after its last append. */
  readonly ttl_ms: number;
  /** Damaged runs that were read, and failures of the removal of expired ones. */
  onError(error: Error): void;
}

/** A lease as this process holds it. */
interface Held {
  readonly slot: number;
  readonly epoch: number;
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
  readonly #dir: string;
  readonly #writer: FileWriter;
  readonly #onError: (error: Error) => void;
  readonly #leases = new Map<RunId, Held>();
  #slots = 0;

  /** Throws a {@link StoreConfigurationError} when the directory cannot be used. */
  constructor({ dir, fsync, ttl_ms, onError }: FileStoreOptions) {
    prepareDirectory(dir);
    this.#dir = dir;
    this.#onError = onError;
    this.#writer = new FileWriter({ dir, ttl_ms, fsync }, onError);
  }

  async acquire(run: RunId, owner: Owner): Promise<Lease> {
    if (!isRunId(run)) throw new AcquireRefusedError(run, 'invalid_id');
    const slot = ++this.#slots;
    const { epoch, seq } = await this.#claim(slot, run, owner);
    const fenced = this.#leases.get(run);
    if (fenced) void this.#writer.request({ kind: 'release', slot: fenced.slot }).catch(ignore);
    this.#leases.set(run, { slot, epoch, stored_seq: seq, turns: new Turns() });
    return { run, owner, epoch };
  }

  append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    return new Promise((resolve, reject) => {
      const held = this.#leases.get(lease.run);
      if (held?.epoch !== lease.epoch) reject(new StaleLeaseError(lease));
      else held.turns.take(() => this.#write(lease, held, records, resolve, reject));
    });
  }

  async finish(lease: Lease, status: FinalStatus): Promise<void> {
    const held = this.#leases.get(lease.run);
    if (held?.epoch !== lease.epoch) return this.#confirmFinished(lease);
    await new Promise<void>((resolve) => held.turns.take(resolve));
    try {
      if (this.#leases.get(lease.run) !== held) return await this.#confirmFinished(lease);
      await this.#writer.request({ kind: 'finish', slot: held.slot, status, seq: held.stored_seq });
      this.#forget(lease);
    } catch (error) {
      throw this.#translate(error, lease);
    } finally {
      held.turns.end();
    }
  }

  async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    const found = isRunId(run) ? await readRun(this.#dir, run) : undefined;
    if (!found) return null;
    const { image, finished } = found;
    const damage = damageOf(image, finished);
    if (damage) this.#onError(new DamagedRunError(run, damage));
    if (!image || !isOwner(image, owner)) return null;
    return {
      status: damage && finished ? 'recovered_from_partial' : image.status,
      seq: Math.max(image.seq, 0),
      records: image.records.filter((record) => isAfter(record, from)),
      ...(damage && { damage }),
    };
  }

  async check(): Promise<void> {
    if (this.#writer.stalled_ms > ANSWER_MAX_MS) {
      throw new Error(`${this.#dir} has not answered a write for ${ANSWER_MAX_MS} ms`);
    }
    await this.#writer.request({ kind: 'check' });
  }

  /** Resolves once everything appended so far is written and the writing thread has ended. */
  close(): Promise<void> {
    return this.#writer.close();
  }

  async #claim(slot: number, run: RunId, owner: Owner): Promise<Claim> {
    try {
      return (await this.#writer.request({ kind: 'acquire', slot, run, owner: hashOf(owner) })) as Claim;
    } catch (error) {
      const code = error instanceof FileStoreError ? error.code : undefined;
      throw code === 'foreign' || code === 'finished' ? new AcquireRefusedError(run, code) : error;
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
      if (this.#leases.get(lease.run) !== held) throw new StaleLeaseError(lease);
      const fresh = recordsToAppend(lease.run, held.stored_seq, records);
      const seq = fresh.at(-1)?.seq;
      if (seq === undefined) settle(held.stored_seq);
      else this.#writer.append(held.slot, fresh.map(encodeRecord).join(''), (error) => settle(seq, error));
    } catch (error) {
      settle(held.stored_seq, error);
    }
  }

  #translate(error: unknown, lease: Lease): unknown {
    if (!(error instanceof FileStoreError) || error.code !== 'stale') return error;
    this.#forget(lease);
    return new StaleLeaseError(lease);
  }

  #forget(lease: Lease): void {
    if (this.#leases.get(lease.run)?.epoch === lease.epoch) this.#leases.delete(lease.run);
  }

  /** The same lease may finish twice: its answer may have been lost. */
  async #confirmFinished(lease: Lease): Promise<void> {
    const opening = await readFinishedOpening(this.#dir, lease.run);
    if (opening?.epoch !== lease.epoch || opening.owner !== hashOf(lease.owner))
      throw new StaleLeaseError(lease);
  }
}

/** Part of a stored run cannot be trusted; what lies before it is used. */
export class DamagedRunError extends Error {
  override readonly name = 'DamagedRunError';

  constructor(run: RunId, { record, reason }: Damage) {
    super(`${run} ends before record ${record}: ${reason}`);
  }
}

/** Opening the file of takeovers proves that files can be made here, which the mode of the directory does not. */
function prepareDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    closeSync(openSync(join(dir, TAKEOVERS_NAME), 'a', 0o600));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new StoreConfigurationError(
      `checkpoint.store: the directory ${dir} cannot be used (${message}); ` +
        'make it writable for this user or configure another directory',
      { cause: error },
    );
  }
}

function damageOf(image: RunImage | undefined, finished: boolean): Damage | undefined {
  if (!image) return { record: 0, reason: 'its opening line cannot be read' };
  if (image.damage || !finished || image.status !== 'running') return image.damage;
  return { record: image.records.length, reason: 'the final line is missing' };
}

const hashOf = (owner: Owner): string => createHash('sha256').update(owner).digest('hex');

function isOwner({ opening }: RunImage, owner: Owner): boolean {
  const [stored, given] = [Buffer.from(opening.owner), Buffer.from(hashOf(owner))];
  return stored.length === given.length && timingSafeEqual(stored, given);
}

const ignore = () => {};
