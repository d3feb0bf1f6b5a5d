import { NOTHING_STORED } from '../append-order.ts';
import { isSameOwner } from '../same-owner.ts';
import type { Seal } from '../seal.ts';
import type { Damage, Owner, RunEnd, RunId } from '../store.ts';
import type { FileDirectory } from './file-directory.ts';
import { FileEpochs } from './file-epochs.ts';
import { FileFinish } from './file-finish.ts';
import { encodeFinal, encodeOpening, type Opening, type RunImage } from './file-format.ts';
import { checkName, finishedName, partialName } from './file-names.ts';
import { type Refusal, refused, toRefusal } from './file-refusal.ts';
import { FileSegments, type FsyncPolicy, STALE } from './file-segments.ts';

export interface Claim {
  /** Where the run stands: {@link NOTHING_STORED} for a new one. */
  readonly seq: number;
  /** What was wrong with a run that was taken over. */
  readonly damage?: Damage;
}

export interface FileLogOptions {
  readonly directory: FileDirectory;
  readonly fsync: FsyncPolicy;
  /** Names this process in the files of the epochs it holds. */
  readonly replica: string;
  readonly seal?: Seal | undefined;
  readonly open_files_max?: number;
}

/** The files of a store, written by one thread. Everything is synchronous but `fdatasync` at the end of a run. */
export class FileLog {
  readonly epochs: FileEpochs;
  readonly #directory: FileDirectory;
  readonly #fsync: FsyncPolicy;
  readonly #replica: string;
  readonly #segments: FileSegments;
  readonly #finish: FileFinish;

  constructor(options: FileLogOptions) {
    const { directory, fsync, replica, seal } = options;
    this.#directory = directory;
    this.#fsync = fsync;
    this.#replica = replica;
    this.epochs = new FileEpochs(directory, seal);
    this.#segments = new FileSegments({ ...options, epochs: this.epochs });
    this.#finish = new FileFinish({ directory, epochs: this.epochs, fsync, replica, seal });
  }

  /** Claims the epoch after `after` for `slot`, a number the caller chooses and names the lease by from then on. */
  acquire(slot: number, run: RunId, owner: Owner, after: number): Claim {
    this.epochs.admit(run, owner, after);
    const epoch = after + 1;
    const fd = this.epochs.claim(run, epoch);
    const opening = { run, epoch, owner, holder: this.#replica };
    if (epoch === 1) return this.#begin(slot, fd, { ...opening, base: NOTHING_STORED });
    const image = this.#takeOver(run, epoch, fd);
    if (image && !image.end) return this.#begin(slot, fd, { ...opening, base: image.seq }, image.damage);
    this.#discard(fd, run, epoch);
    if (image?.end) this.#finish.finish(run, after, image.end);
    throw refused(image ? 'finished' : this.#reasonGone(run, owner, after), run);
  }

  /**
   * Appends the texts of one batch, `meta` being pairs of slot and length in UTF-16 units.
   * Returns what was refused, by position.
   */
  appendBatch(text: string, meta: Int32Array): Map<number, Refusal> {
    const refusals = new Map<number, Refusal>();
    let start = 0;
    for (let i = 0; i < meta.length; i += 2) {
      const [slot, length] = [meta[i] as number, meta[i + 1] as number];
      try {
        this.#segments.append(slot, text.slice(start, start + length));
      } catch (error) {
        refusals.set(i / 2, toRefusal(error));
      }
      start += length;
    }
    const announced = this.epochs.announced();
    for (let i = 0; i < meta.length; i += 2) {
      const slot = meta[i] as number;
      const segment = this.#segments.find(slot);
      if (!segment || !this.#segments.isSuperseded(segment, announced)) continue;
      this.#segments.forget(slot);
      refusals.set(i / 2, toRefusal(STALE));
    }
    return refusals;
  }

  /** Seals the run and gives it the file of a finished one. `seq`: its last event. Returns what was found damaged. */
  async finish(slot: number, end: RunEnd, seq: number): Promise<Damage | undefined> {
    const segment = this.#segments.get(slot);
    if (!segment.sealed) this.#segments.append(slot, encodeFinal(end, seq));
    segment.sealed = true;
    if (this.#fsync !== 'never') await this.#segments.sync(slot);
    if (this.#segments.isSuperseded(segment, this.epochs.announced())) {
      this.#segments.forget(slot);
      throw STALE;
    }
    const { done, damage } = this.#finish.finish(segment.opening.run, segment.opening.epoch, end);
    this.#segments.forget(slot);
    if (!done) throw STALE;
    return damage;
  }

  /** Removes the file of a finished run. */
  purge(run: RunId, owner: Owner): void {
    const name = finishedName(run);
    const opening = this.epochs.opening(run, name);
    if (opening && isSameOwner(opening.owner, owner)) this.#directory.remove(name);
  }

  /** Takes the run over in nobody's name. `seq`: its last event. Nothing happens when the lease is fenced already. */
  release(slot: number, seq: number): void {
    const segment = this.#segments.find(slot);
    if (!segment) return;
    const { run, epoch, owner } = segment.opening;
    this.#segments.forget(slot);
    const fd = this.#directory.create(partialName(run, epoch + 1));
    if (fd === undefined) return;
    // Nobody but this process writes to the run, so that nobody has to be told.
    try {
      this.#directory.write(fd, encodeOpening({ run, epoch: epoch + 1, owner, base: seq }));
    } finally {
      this.#directory.fs.closeSync(fd);
    }
  }

  /** Forgets a lease that was fenced. */
  forget(slot: number): void {
    this.#segments.forget(slot);
  }

  /** Throws a file-system error while nothing can be written. */
  check(): void {
    const name = checkName(this.#replica);
    this.#directory.replace(name, 'ok');
    this.#directory.remove(name);
  }

  close(): void {
    this.#segments.close();
    this.epochs.close();
  }

  /** What is taken over. When this fails the claim has to stay: a later claim may rely on it by now. */
  #takeOver(run: RunId, epoch: number, fd: number): RunImage | undefined {
    try {
      this.epochs.announce();
      return this.epochs.read(run, epoch - 1);
    } catch (error) {
      this.#directory.fs.closeSync(fd);
      throw error;
    }
  }

  #begin(slot: number, fd: number, opening: Opening, damage?: Damage): Claim {
    try {
      this.#segments.begin(slot, fd, opening);
    } catch (error) {
      if (opening.epoch === 1) this.#discard(fd, opening.run, 1);
      else this.#directory.fs.closeSync(fd);
      throw error;
    }
    return damage ? { seq: opening.base, damage } : { seq: opening.base };
  }

  /** Why a run that was there is not there any more. */
  #reasonGone(run: RunId, owner: Owner, after: number): string {
    try {
      this.epochs.admit(run, owner, after);
    } catch (error) {
      return toRefusal(error).code;
    }
    return 'foreign';
  }

  #discard(fd: number, run: RunId, epoch: number): void {
    this.#directory.fs.closeSync(fd);
    this.#directory.remove(partialName(run, epoch));
  }
}
