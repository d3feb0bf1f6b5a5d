import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { isAfter, recordsToAppend } from './append-order.ts';
import type { RunImage } from './file-format.ts';
import { decodeOpening, decodeRun } from './file-format.ts';
import type { Claim, FsyncPolicy, Refusal } from './file-log.ts';
import { finishedName, partialName } from './file-names.ts';
import type { Answer, BatchMessage, Request, RequestMessage, WriterThreadData } from './file-protocol.ts';
import type { JournalRecord } from './journal.ts';
import { encodeRecord } from './record-codec.ts';
import type { Damage, FinalStatus, Lease, Owner, RunId, Store, StoredRun } from './store.ts';
import { AcquireRefusedError, isRunId, StaleLeaseError, StoreConfigurationError } from './store.ts';
import { Turns } from './turns.ts';

/** A writing thread that has not answered for this long makes {@link FileStore.check} reject. */
const ANSWER_MAX_MS = 5000;
/** How often a reader starts again because a run was finished while it read. */
const READS_MAX = 5;

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
  /** One call at a time per lease, so that the next one knows what the last one stored. */
  readonly turns: Turns;
}

interface PendingAppend {
  readonly lease: Lease;
  readonly held: Held;
  readonly text: string;
  readonly seq: number;
  readonly resolve: (seq: number) => void;
  readonly reject: (error: Error) => void;
}

interface PendingRequest {
  readonly resolve: (claim: Claim | undefined) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Runs as files in one directory, private to the user who runs the process. Appends survive the death of the process
 * as soon as they resolve. Several processes may share the directory if its file system is local to all of them.
 * One thread does the writing; while it writes one batch, the next one gathers.
 */
export class FileStore implements Store {
  readonly name = 'file';
  readonly #dir: string;
  readonly #worker: Worker;
  readonly #onError: (error: Error) => void;
  readonly #leases = new Map<RunId, Held>();
  readonly #requests = new Map<number, PendingRequest>();
  #slots = 0;
  #ids = 0;
  #gathering: PendingAppend[] = [];
  #writing: readonly PendingAppend[] = [];
  #posted_at_ms = 0;
  #failure: Error | undefined;

  /** Throws a {@link StoreConfigurationError} when the directory cannot be used. */
  constructor(options: FileStoreOptions) {
    this.#dir = options.dir;
    this.#onError = options.onError;
    prepareDirectory(options.dir);
    const thread = new URL(`./file-writer-thread${import.meta.url.slice(-3)}`, import.meta.url);
    const { dir, ttl_ms, fsync } = options;
    const workerData: WriterThreadData = { dir, ttl_ms, fsync };
    this.#worker = new Worker(thread, { workerData, name: 'holdfast-file-store' });
    this.#worker.on('message', (answer: Answer) => this.#answered(answer));
    this.#worker.on('error', (error) => this.#fail(toError(error)));
    this.#worker.on('exit', () => this.#fail(new Error('the file store is closed')));
  }

  async acquire(run: RunId, owner: Owner): Promise<Lease> {
    if (!isRunId(run)) throw new AcquireRefusedError(run, 'invalid_id');
    const slot = ++this.#slots;
    const claim = await this.#request({ kind: 'acquire', slot, run, owner: hashOf(owner) }).catch(
      (error: unknown) => {
        throw error instanceof WriterError && (error.code === 'foreign' || error.code === 'finished')
          ? new AcquireRefusedError(run, error.code)
          : error;
      },
    );
    const { epoch, seq } = claim as Claim;
    const fenced = this.#leases.get(run);
    if (fenced) void this.#request({ kind: 'release', slot: fenced.slot }).catch(ignored);
    this.#leases.set(run, { slot, epoch, stored_seq: seq, turns: new Turns() });
    return { run, owner, epoch };
  }

  append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    return new Promise((resolve, reject) => {
      const held = this.#leases.get(lease.run);
      if (held?.epoch !== lease.epoch) reject(new StaleLeaseError(lease));
      else held.turns.take(() => this.#gather(lease, held, records, resolve, reject));
    });
  }

  async finish(lease: Lease, status: FinalStatus): Promise<void> {
    const held = this.#leases.get(lease.run);
    if (held?.epoch !== lease.epoch) return this.#confirmFinished(lease);
    await new Promise<void>((resolve) => held.turns.take(resolve));
    try {
      if (this.#leases.get(lease.run) !== held) return await this.#confirmFinished(lease);
      await this.#request({ kind: 'finish', slot: held.slot, status, seq: held.stored_seq });
      this.#forget(lease);
    } catch (error) {
      throw this.#translate(error, lease);
    } finally {
      held.turns.end();
    }
  }

  async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    if (!isRunId(run)) return null;
    const found = await this.#readRun(run);
    if (!found || !isEqual(found.image.opening.owner, hashOf(owner))) return null;
    const { image, finished } = found;
    const unsealed = finished && image.status === 'running';
    const damage = image.damage ?? (unsealed ? finalLineMissing(image) : undefined);
    const status = unsealed ? 'recovered_from_partial' : image.status;
    const records = image.records.filter((record) => isAfter(record, from));
    const stored = { status, seq: Math.max(image.seq, 0), records } as const;
    if (!damage) return stored;
    this.#onError(new DamagedRunError(run, damage));
    return { ...stored, damage };
  }

  async check(): Promise<void> {
    if (this.#writing.length > 0 && performance.now() - this.#posted_at_ms > ANSWER_MAX_MS) {
      throw new Error(`${this.#dir} has not answered a write for ${ANSWER_MAX_MS} ms`);
    }
    await this.#request({ kind: 'check' });
  }

  /** Resolves once everything appended so far is written and the thread has ended. */
  async close(): Promise<void> {
    while (this.#writing.length > 0 || this.#gathering.length > 0 || this.#requests.size > 0) {
      await once(this.#worker, 'message');
    }
    if (this.#failure) return;
    const exited = once(this.#worker, 'exit');
    this.#send({ kind: 'close' }, 0);
    await exited;
  }

  /** Puts an append into the next batch. */
  #gather(
    lease: Lease,
    held: Held,
    records: readonly JournalRecord[],
    resolve: (seq: number) => void,
    reject: (error: Error) => void,
  ): void {
    try {
      if (this.#failure) throw this.#failure;
      if (this.#leases.get(lease.run) !== held) throw new StaleLeaseError(lease);
      const fresh = recordsToAppend(lease.run, held.stored_seq, records);
      const seq = fresh.at(-1)?.seq;
      if (seq !== undefined) {
        this.#gathering.push({ lease, held, text: fresh.map(encodeRecord).join(''), seq, resolve, reject });
        if (this.#gathering.length === 1 && this.#writing.length === 0) queueMicrotask(() => this.#post());
        return;
      }
      resolve(held.stored_seq);
    } catch (error) {
      reject(toError(error));
    }
    held.turns.end();
  }

  #post(): void {
    const batch = this.#gathering;
    this.#gathering = [];
    this.#writing = batch;
    this.#posted_at_ms = performance.now();
    const meta = new Int32Array(batch.length * 2);
    let text = '';
    for (const [position, { held, text: lines }] of batch.entries()) {
      meta[position * 2] = held.slot;
      meta[position * 2 + 1] = lines.length;
      text += lines;
    }
    this.#worker.postMessage({ kind: 'batch', text, meta } satisfies BatchMessage);
  }

  #request(request: Request): Promise<Claim | undefined> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const id = ++this.#ids;
      this.#requests.set(id, { resolve, reject });
      this.#send(request, id);
    });
  }

  #send(request: Request, id: number): void {
    this.#worker.postMessage({ kind: 'request', id, request } satisfies RequestMessage);
  }

  #answered(answer: Answer): void {
    switch (answer.kind) {
      case 'batch':
        this.#written(answer.refused);
        break;
      case 'done':
        this.#takeRequest(answer.id)?.resolve(answer.claim);
        break;
      case 'refused':
        this.#takeRequest(answer.id)?.reject(new WriterError(answer.refusal));
        break;
      case 'sweep_failed':
        this.#onError(new WriterError(answer.refusal));
        break;
    }
  }

  #takeRequest(id: number): PendingRequest | undefined {
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    return request;
  }

  #written(refused: ReadonlyMap<number, Refusal>): void {
    const batch = this.#writing;
    this.#writing = [];
    if (this.#gathering.length > 0) this.#post();
    for (const [position, append] of batch.entries()) {
      const refusal = refused.get(position);
      if (refusal) {
        append.reject(this.#translate(new WriterError(refusal), append.lease));
      } else {
        append.held.stored_seq = append.seq;
        append.resolve(append.seq);
      }
      append.held.turns.end();
    }
  }

  #translate(error: unknown, lease: Lease): Error {
    if (!(error instanceof WriterError) || error.code !== 'stale') return toError(error);
    this.#forget(lease);
    return new StaleLeaseError(lease);
  }

  #forget(lease: Lease): void {
    if (this.#leases.get(lease.run)?.epoch === lease.epoch) this.#leases.delete(lease.run);
  }

  /** The same lease may finish twice: its answer may have been lost. */
  async #confirmFinished(lease: Lease): Promise<void> {
    const bytes = await readIfExists(join(this.#dir, finishedName(lease.run)));
    const opening = bytes && decodeOpening(bytes, lease.run);
    if (opening?.epoch !== lease.epoch || opening.owner !== hashOf(lease.owner))
      throw new StaleLeaseError(lease);
  }

  async #readRun(run: RunId): Promise<{ readonly image: RunImage; readonly finished: boolean } | undefined> {
    for (let attempt = 0; attempt < READS_MAX; attempt++) {
      const bytes = await readIfExists(join(this.#dir, finishedName(run)));
      const files = bytes ? [bytes] : await this.#readPartials(run);
      if (!files) continue;
      const image = decodeRun(files, run);
      return image && { image, finished: bytes !== undefined };
    }
    return undefined;
  }

  /** Undefined when the files were replaced by a finished one meanwhile, or never were there. */
  async #readPartials(run: RunId): Promise<readonly Buffer[] | undefined> {
    const files: Buffer[] = [];
    for (let epoch = 1; ; epoch++) {
      const bytes = await readIfExists(join(this.#dir, partialName(run, epoch)));
      if (!bytes) break;
      files.push(bytes);
    }
    const first = await stat(join(this.#dir, partialName(run, 1))).catch(() => undefined);
    return first && files.length > 0 ? files : undefined;
  }

  /** The thread is gone: everything waiting for it fails, and so does everything later. */
  #fail(error: Error): void {
    this.#failure ??= error;
    for (const request of this.#requests.values()) request.reject(this.#failure);
    for (const append of [...this.#writing, ...this.#gathering]) {
      append.reject(this.#failure);
      append.held.turns.end();
    }
    this.#requests.clear();
    this.#writing = [];
    this.#gathering = [];
  }
}

class WriterError extends Error {
  override readonly name = 'FileStoreError';
  readonly code: string;

  constructor({ code, message }: Refusal) {
    super(message);
    this.code = code;
  }
}

/** Part of a stored run cannot be trusted; what lies before it is used. */
export class DamagedRunError extends Error {
  override readonly name = 'DamagedRunError';

  constructor(run: RunId, { record, reason }: Damage) {
    super(`${run} ends before record ${record}: ${reason}`);
  }
}

function prepareDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    if (!statSync(dir).isDirectory()) throw new Error('it is not a directory');
  } catch (error) {
    throw new StoreConfigurationError(
      `checkpoint.store: the directory ${dir} cannot be used (${toError(error).message}); ` +
        'make it writable for this user or configure another directory',
      { cause: error },
    );
  }
}

const ignored = () => {};

const hashOf = (owner: Owner): string => createHash('sha256').update(owner).digest('hex');

function isEqual(stored: string, given: string): boolean {
  const [left, right] = [Buffer.from(stored), Buffer.from(given)];
  return left.length === right.length && timingSafeEqual(left, right);
}

const finalLineMissing = ({ records }: RunImage): Damage => ({
  record: records.length,
  reason: 'the final line is missing',
});

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

async function readIfExists(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
