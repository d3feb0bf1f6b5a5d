import type { FileDirectory } from './file-directory.ts';
import type { FileEpochs } from './file-epochs.ts';
import type { Opening } from './file-format.ts';
import { encodeOpening } from './file-format.ts';
import { partialName } from './file-names.ts';
import { refused } from './file-refusal.ts';
import { OpenFiles } from './open-files.ts';

/** Runs beyond that are stored too, at the cost of opening a file for every append. */
const OPEN_FILES_MAX = 1024;
/** `fdatasync` runs on the thread pool of the whole process, which DNS and file reads need too. */
const SYNCS_MAX = 2;

/** When written data is forced to the disk. Surviving a killed process needs none of it, surviving a power cut does. */
export type FsyncPolicy = 'never' | 'finish' | 'append';

/** The file that one lease appends to. */
export interface Segment {
  readonly opening: Opening;
  readonly name: string;
  /** Exists once a successor has claimed the run. */
  readonly successor_name: string;
  /** Length up to which the file holds whole lines. */
  size: number;
  /** A write failed: cut the file back to `size` before the next one. */
  torn: boolean;
  /** How many takeovers the directory had seen when the lease was last found valid. */
  takeovers: number;
  sealed: boolean;
}

export interface FileSegmentsOptions {
  readonly directory: FileDirectory;
  readonly epochs: FileEpochs;
  readonly fsync: FsyncPolicy;
  readonly open_files_max?: number;
}

/** The files that this process appends to, by slot: a number that the caller names a lease by. */
export class FileSegments {
  readonly #directory: FileDirectory;
  readonly #epochs: FileEpochs;
  readonly #fsync: FsyncPolicy;
  readonly #segments = new Map<number, Segment>();
  readonly #files: OpenFiles;
  #syncing = 0;
  readonly #waiting: (() => void)[] = [];

  constructor({ directory, epochs, fsync, open_files_max = OPEN_FILES_MAX }: FileSegmentsOptions) {
    this.#directory = directory;
    this.#epochs = epochs;
    this.#fsync = fsync;
    this.#files = new OpenFiles(directory.fs, open_files_max);
  }

  /** Writes the opening line of a file that was just created. On failure the file is left to the caller. */
  begin(slot: number, fd: number, opening: Opening): void {
    const size = this.#directory.write(fd, encodeOpening(opening));
    this.#segments.set(slot, {
      opening,
      name: partialName(opening.run, opening.epoch),
      successor_name: partialName(opening.run, opening.epoch + 1),
      size,
      torn: false,
      // Not the present count: a successor may have come already.
      takeovers: -1,
      sealed: false,
    });
    this.#files.keep(slot, fd);
  }

  /** Undefined when the lease was fenced, released or finished. */
  find(slot: number): Segment | undefined {
    return this.#segments.get(slot);
  }

  /** Throws `stale` when there is none. */
  get(slot: number): Segment {
    const segment = this.#segments.get(slot);
    if (!segment) throw STALE;
    return segment;
  }

  append(slot: number, text: string): void {
    const segment = this.get(slot);
    const fd = this.#file(slot, segment);
    if (segment.torn) this.#cut(fd, segment);
    segment.torn = true;
    const written = this.#directory.write(fd, text);
    if (this.#fsync === 'append') this.#directory.fs.fdatasyncSync(fd);
    segment.torn = false;
    segment.size += written;
  }

  /**
   * Whether another lease took the run over. `announced`: how many takeovers there were after the last write; looking
   * for a successor of every run after every write would cost as much as the write.
   */
  isSuperseded(segment: Segment, announced: number): boolean {
    if (segment.takeovers === announced) return false;
    if (this.#directory.has(segment.successor_name) || !this.#directory.has(segment.name)) return true;
    segment.takeovers = announced;
    return false;
  }

  /** Resolves once everything appended is on the disk. */
  async sync(slot: number): Promise<void> {
    const fd = this.#file(slot, this.get(slot));
    this.#files.take(slot);
    while (this.#syncing === SYNCS_MAX) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#syncing++;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#directory.fs.fdatasync(fd, (error) => (error ? reject(error) : resolve()));
      });
    } finally {
      this.#syncing--;
      this.#waiting.shift()?.();
      if (this.#segments.has(slot)) this.#files.keep(slot, fd);
      else this.#directory.fs.closeSync(fd);
    }
  }

  forget(slot: number): void {
    this.#files.close(slot);
    this.#segments.delete(slot);
  }

  close(): void {
    for (const slot of [...this.#segments.keys()]) this.forget(slot);
  }

  /** Half a line in the middle of a file would hide everything after it. */
  #cut(fd: number, segment: Segment): void {
    // What a successor has read already must stay as it was.
    if (this.isSuperseded(segment, this.#epochs.announced())) throw STALE;
    this.#directory.fs.ftruncateSync(fd, segment.size);
    segment.torn = false;
  }

  #file(slot: number, segment: Segment): number {
    const open = this.#files.get(slot);
    if (open !== undefined) return open;
    // It must exist: a successor may have finished the run and removed this file.
    const fd = this.#directory.reopen(segment.name);
    if (fd === undefined) throw STALE;
    this.#files.keep(slot, fd);
    return fd;
  }
}

/** The answer to whoever holds no lease, or no longer. */
export const STALE = refused('stale', 'superseded');
