import { isSameOwner } from '../same-owner.ts';
import type { Seal } from '../seal.ts';
import type { Owner, RunId } from '../store.ts';
import type { FileDirectory } from './file-directory.ts';
import type { Opening, RunImage } from './file-format.ts';
import { decodeOpening, decodeRun } from './file-format.ts';
import { finishedName, partialName, TAKEOVERS_NAME } from './file-names.ts';
import { refused } from './file-refusal.ts';

/** Nearly every opening line is a tenth of that; a longer one costs a second read. */
const OPENING_BYTES = 4096;

/**
 * The epochs of runs, one file each.
 *
 * Fencing. A lease is a file created with O_EXCL, so one epoch has one holder on however many processes share the
 * directory. A successor first creates its file, then announces the takeover, then reads what it takes over. A writer
 * first writes, then looks for a takeover, and only then reports success. So whatever was reported is read by the
 * successor, and whatever is written after that is refused, and never read. This needs a file system whose calls
 * are atomic and coherent between the processes: a local one.
 */
export class FileEpochs {
  readonly #directory: FileDirectory;
  readonly #seal: Seal | undefined;
  readonly #takeovers_fd: number;

  constructor(directory: FileDirectory, seal: Seal | undefined) {
    this.#directory = directory;
    this.#seal = seal;
    this.#takeovers_fd = directory.fs.openSync(directory.path(TAKEOVERS_NAME), 'a', 0o600);
  }

  /**
   * Throws a refusal unless `owner` may follow epoch `after` of the run. To be asked before anything is created: a
   * stranger, or somebody who comes late, must not be able to fence the holder.
   */
  admit(run: RunId, owner: Owner, after: number): void {
    const first = this.#first(run);
    if (!first && after === 0) return;
    if (!first?.opening || !isSameOwner(first.opening.owner, owner)) throw refused('foreign', run);
    if (first.finished) throw refused('finished', run);
    if (after === 0 || !this.#has(run, after) || this.#has(run, after + 1)) throw refused('taken', run);
  }

  /** Creates the file of an epoch. Throws `taken` when somebody else has. */
  claim(run: RunId, epoch: number): number {
    const fd = this.#directory.create(partialName(run, epoch));
    if (fd === undefined) throw refused('taken', run);
    return fd;
  }

  /** Tells every writer in the directory to look whether it was its run. */
  announce(): void {
    this.#directory.fs.writeSync(this.#takeovers_fd, '.');
  }

  /** How many takeovers were announced. */
  announced(): number {
    return this.#directory.fs.fstatSync(this.#takeovers_fd).size;
  }

  /** A running run up to an epoch; undefined when its files were replaced by a finished one, or are gone. */
  read(run: RunId, last_epoch: number): RunImage | undefined {
    const files: Buffer[] = [];
    for (let epoch = 1; epoch <= last_epoch; epoch++) {
      const bytes = this.#directory.read(partialName(run, epoch));
      if (!bytes) return undefined;
      files.push(bytes);
    }
    return decodeRun(files, run, this.#seal);
  }

  /** The opening line of a file, without reading all of it. */
  opening(run: RunId, name: string): Opening | undefined {
    const start = this.#directory.readStart(name, OPENING_BYTES);
    if (!start) return undefined;
    const isCut = start.length === OPENING_BYTES && !start.includes('\n');
    return decodeOpening((isCut ? this.#directory.read(name) : start) ?? start, run);
  }

  close(): void {
    this.#directory.fs.closeSync(this.#takeovers_fd);
  }

  #has(run: RunId, epoch: number): boolean {
    return this.#directory.has(partialName(run, epoch));
  }

  #first(run: RunId): { readonly finished: boolean; readonly opening: Opening | undefined } | undefined {
    const [partial, finished] = [partialName(run, 1), finishedName(run)];
    // Finished counts, even if the files of the epochs are still there. Asked twice, because it may become so meanwhile.
    for (const name of [finished, partial, finished]) {
      if (this.#directory.has(name)) return { finished: name === finished, opening: this.opening(run, name) };
    }
    return undefined;
  }
}
