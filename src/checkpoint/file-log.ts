import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { NOTHING_STORED } from './append-order.ts';
import type { Opening, RunImage } from './file-format.ts';
import { decodeOpening, decodeRun, encodeFinal, encodeFinished, encodeOpening } from './file-format.ts';
import { finishedName, partialName, TAKEOVERS_NAME, temporaryName } from './file-names.ts';
import type { FileSystem } from './file-system.ts';
import { OpenFiles } from './open-files.ts';
import type { FinalStatus, RunId } from './store.ts';

/** Runs beyond that are stored too, at the cost of opening a file for every append. */
const OPEN_FILES_MAX = 1024;
/** `fdatasync` runs on the thread pool of the whole process, which DNS and file reads need too. */
const SYNCS_MAX = 2;
const CLAIMS_MAX = 16;
const PRIVATE_FILE = 0o600;
const NEW_RUN: Pick<RunImage, 'status' | 'seq'> = { status: 'running', seq: NOTHING_STORED };
const { O_APPEND, O_CREAT, O_EXCL, O_WRONLY } = node_fs.constants;

/** When written data is forced to the disk. Surviving a killed process needs none of it, surviving a power cut does. */
export type FsyncPolicy = 'never' | 'finish' | 'append';

/** `stale`, `foreign` and `finished` are answers; anything else is the code of a file-system error. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
}

export interface Claim {
  readonly epoch: number;
  /** Where the run stands: {@link NOTHING_STORED} for a new one. */
  readonly seq: number;
}

/** The file one lease appends to. */
interface Segment {
  readonly opening: Opening;
  readonly path: string;
  /** Exists once a successor has claimed the run. */
  readonly successor_path: string;
  /** Length up to which the file holds whole lines. */
  size: number;
  /** A write failed: cut the file back to `size` before the next one. */
  torn: boolean;
  /** How many takeovers the directory had seen when the lease was last found valid. */
  takeovers: number;
  sealed: boolean;
}

/**
 * The files of a store, written by one thread. Everything is synchronous but `fdatasync` at the end of a run.
 *
 * Fencing. A lease is a file created with O_EXCL, so one epoch has one holder on however many processes share the
 * directory. A successor first creates its file, then announces the takeover, then reads what it takes over. A writer
 * first writes, then looks for a takeover, and only then reports success. So whatever was reported is read by the
 * successor, and whatever is written after that is refused, and never read. This needs a file system whose calls
 * are atomic and coherent between the processes: a local one.
 */
export class FileLog {
  readonly #dir: string;
  readonly #fsync: FsyncPolicy;
  readonly #fs: FileSystem;
  readonly #takeovers_fd: number;
  readonly #segments = new Map<number, Segment>();
  readonly #files: OpenFiles;
  #syncing = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(options: {
    readonly dir: string;
    readonly fsync: FsyncPolicy;
    readonly open_files_max?: number;
    readonly fs?: FileSystem;
  }) {
    this.#dir = options.dir;
    this.#fsync = options.fsync;
    this.#fs = options.fs ?? node_fs;
    this.#files = new OpenFiles(this.#fs, options.open_files_max ?? OPEN_FILES_MAX);
    this.#takeovers_fd = this.#fs.openSync(this.#path(TAKEOVERS_NAME), 'a', PRIVATE_FILE);
  }

  /** Claims the next epoch of a run for `slot`, a number the caller chooses and names the lease by from then on. */
  acquire(slot: number, run: RunId, owner: string): Claim {
    for (let claim = 0; claim < CLAIMS_MAX; claim++) {
      const epoch = this.#nextEpoch(run, owner);
      const path = this.#path(partialName(run, epoch));
      const fd = this.#create(path);
      if (fd === undefined) continue;
      const from = epoch === 1 ? NEW_RUN : this.#takeOver(run, epoch, fd);
      if (from?.status === 'running') {
        this.#begin(slot, fd, path, { run, epoch, owner, base: from.seq });
        return { epoch, seq: from.seq };
      }
      this.#discard(fd, path);
      if (from) throw refusal('finished', run);
    }
    throw refusal('EAGAIN', `${run} is being claimed by too many at once`);
  }

  /**
   * Appends the texts of one batch, `meta` being pairs of slot and length in UTF-16 units.
   * Returns what was refused, by position.
   */
  appendBatch(text: string, meta: Int32Array): Map<number, Refusal> {
    const refused = new Map<number, Refusal>();
    let start = 0;
    for (let i = 0; i < meta.length; i += 2) {
      const [slot, length] = [meta[i] as number, meta[i + 1] as number];
      try {
        this.#append(slot, text.slice(start, start + length));
      } catch (error) {
        refused.set(i / 2, toRefusal(error));
      }
      start += length;
    }
    const takeovers = this.#takeovers();
    for (let i = 0; i < meta.length; i += 2) {
      const segment = this.#segments.get(meta[i] as number);
      if (!segment || !this.#isSuperseded(segment, takeovers)) continue;
      this.release(meta[i] as number);
      refused.set(i / 2, toRefusal(STALE));
    }
    return refused;
  }

  /** Seals the run and gives its file the name of a finished one. `seq`: its last event. */
  async finish(slot: number, status: FinalStatus, seq: number): Promise<void> {
    const segment = this.#segment(slot);
    if (!segment.sealed) this.#append(slot, encodeFinal(status, seq));
    segment.sealed = true;
    if (this.#fsync !== 'never') await this.#sync(slot);
    if (this.#isSuperseded(segment, this.#takeovers())) {
      this.release(slot);
      throw STALE;
    }
    if (segment.opening.epoch === 1)
      this.#fs.renameSync(segment.path, this.#path(finishedName(segment.opening.run)));
    else this.#merge(segment.opening, status);
    this.release(slot);
  }

  /** Forgets a lease without finishing the run. */
  release(slot: number): void {
    this.#files.close(slot);
    this.#segments.delete(slot);
  }

  /** Marks the files of held runs as alive, for the sweeps of other processes. */
  touch(now_s: number): void {
    for (const { opening } of this.#segments.values()) {
      for (let epoch = 1; epoch <= opening.epoch; epoch++) {
        try {
          this.#fs.utimesSync(this.#path(partialName(opening.run, epoch)), now_s, now_s);
        } catch {
          // A file that cannot be touched cannot be written either: its run is told with its next append.
        }
      }
    }
  }

  heldRuns(): Set<RunId> {
    return new Set([...this.#segments.values()].map(({ opening }) => opening.run));
  }

  /** Throws a file-system error while nothing can be written. */
  check(): void {
    const path = this.#path(`check-${process.pid}`);
    const fd = this.#fs.openSync(path, 'w', PRIVATE_FILE);
    try {
      this.#fs.writeSync(fd, 'ok');
    } finally {
      this.#discard(fd, path);
    }
  }

  close(): void {
    for (const slot of [...this.#segments.keys()]) this.release(slot);
    this.#fs.closeSync(this.#takeovers_fd);
  }

  #path(name: string): string {
    return join(this.#dir, name);
  }

  /** Refuses a finished or foreign run before anything is created: a stranger must not be able to fence the holder. */
  #nextEpoch(run: RunId, owner: string): number {
    const first = this.#readFirst(run);
    if (!first) return 1;
    if (decodeOpening(first.bytes, run)?.owner !== owner) throw refusal('foreign', run);
    if (first.finished) throw refusal('finished', run);
    let epoch = 2;
    while (this.#fs.existsSync(this.#path(partialName(run, epoch)))) epoch++;
    return epoch;
  }

  #readFirst(run: RunId): { readonly bytes: Buffer; readonly finished: boolean } | undefined {
    for (const finished of [false, true]) {
      const bytes = this.#readFile(finished ? finishedName(run) : partialName(run, 1));
      if (bytes) return { bytes, finished };
    }
    return undefined;
  }

  #readFile(name: string): Buffer | undefined {
    try {
      return this.#fs.readFileSync(this.#path(name));
    } catch (error) {
      if (isCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  #create(path: string): number | undefined {
    try {
      return this.#fs.openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, PRIVATE_FILE);
    } catch (error) {
      if (isCode(error, 'EEXIST')) return undefined;
      throw error;
    }
  }

  /**
   * The run that is taken over; undefined when its files were replaced meanwhile. When this fails the claim has to
   * stay: a later claim may rely on it by now.
   */
  #takeOver(run: RunId, epoch: number, fd: number): RunImage | undefined {
    try {
      this.#fs.writeSync(this.#takeovers_fd, '.');
      return this.#readRun(run, epoch - 1);
    } catch (error) {
      this.#fs.closeSync(fd);
      throw error;
    }
  }

  #readRun(run: RunId, last_epoch: number): RunImage | undefined {
    const files: Buffer[] = [];
    for (let epoch = 1; epoch <= last_epoch; epoch++) {
      const bytes = this.#readFile(partialName(run, epoch));
      if (!bytes) return undefined;
      files.push(bytes);
    }
    return decodeRun(files, run);
  }

  #begin(slot: number, fd: number, path: string, opening: Opening): void {
    try {
      const size = this.#write(fd, encodeOpening(opening));
      const successor_path = this.#path(partialName(opening.run, opening.epoch + 1));
      // Not the present count: a successor may have come already.
      const takeovers = -1;
      this.#segments.set(slot, {
        opening,
        path,
        successor_path,
        size,
        torn: false,
        takeovers,
        sealed: false,
      });
      this.#files.keep(slot, fd);
    } catch (error) {
      if (opening.epoch === 1) this.#discard(fd, path);
      else this.#fs.closeSync(fd);
      throw error;
    }
  }

  #segment(slot: number): Segment {
    const segment = this.#segments.get(slot);
    if (!segment) throw STALE;
    return segment;
  }

  #append(slot: number, text: string): void {
    const segment = this.#segment(slot);
    const fd = this.#file(slot, segment);
    if (segment.torn) this.#cut(fd, segment);
    segment.torn = true;
    const written = this.#write(fd, text);
    if (this.#fsync === 'append') this.#fs.fdatasyncSync(fd);
    segment.torn = false;
    segment.size += written;
  }

  #write(fd: number, text: string): number {
    const written = this.#fs.writeSync(fd, text);
    const wanted = Buffer.byteLength(text);
    if (written !== wanted) throw refusal('ENOSPC', `only ${written} of ${wanted} bytes were written`);
    return written;
  }

  /** Half a line in the middle of a file would hide everything after it. */
  #cut(fd: number, segment: Segment): void {
    this.#fs.ftruncateSync(fd, segment.size);
    segment.torn = false;
  }

  #takeovers(): number {
    return this.#fs.fstatSync(this.#takeovers_fd).size;
  }

  /** Looking for a successor of every run after every write would cost as much as the write. */
  #isSuperseded(segment: Segment, takeovers: number): boolean {
    if (segment.takeovers === takeovers) return false;
    if (this.#fs.existsSync(segment.successor_path) || !this.#fs.existsSync(segment.path)) return true;
    segment.takeovers = takeovers;
    return false;
  }

  /** A run that was taken over is put together from the files of its epochs. */
  #merge(opening: Opening, status: FinalStatus): void {
    const { run, epoch } = opening;
    const image = this.#readRun(run, epoch);
    if (!image) throw STALE;
    const temporary = this.#path(temporaryName(run, epoch));
    const fd = this.#fs.openSync(temporary, 'w', PRIVATE_FILE);
    try {
      this.#write(fd, encodeFinished(opening, image, status));
      if (this.#fsync !== 'never') this.#fs.fdatasyncSync(fd);
    } finally {
      this.#fs.closeSync(fd);
    }
    this.#fs.renameSync(temporary, this.#path(finishedName(run)));
    // In this order: a reader takes the first file's presence as proof that the later ones were still there.
    for (let old = 1; old <= epoch; old++)
      this.#fs.rmSync(this.#path(partialName(run, old)), { force: true });
  }

  #file(slot: number, segment: Segment): number {
    const open = this.#files.get(slot);
    if (open !== undefined) return open;
    try {
      // Without O_CREAT: a successor may have finished the run and removed this file.
      const fd = this.#fs.openSync(segment.path, O_WRONLY | O_APPEND);
      this.#files.keep(slot, fd);
      return fd;
    } catch (error) {
      throw isCode(error, 'ENOENT') ? STALE : error;
    }
  }

  async #sync(slot: number): Promise<void> {
    const fd = this.#file(slot, this.#segment(slot));
    this.#files.take(slot);
    while (this.#syncing === SYNCS_MAX) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#syncing++;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#fs.fdatasync(fd, (error) => (error ? reject(error) : resolve()));
      });
    } finally {
      this.#syncing--;
      this.#waiting.shift()?.();
      this.#files.keep(slot, fd);
    }
  }

  #discard(fd: number, path: string): void {
    this.#fs.closeSync(fd);
    this.#fs.unlinkSync(path);
  }
}

class RefusedError extends Error implements Refusal {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const refusal = (code: string, message: string): RefusedError => new RefusedError(code, message);
const STALE = refusal('stale', 'superseded');

export const toRefusal = (error: unknown): Refusal =>
  error instanceof Error
    ? { code: 'code' in error ? String(error.code) : error.name, message: error.message }
    : { code: 'unknown', message: String(error) };

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
