import type { Seal } from '../seal.ts';
import type { Damage, RunEnd, RunId } from '../store.ts';
import type { FileDirectory } from './file-directory.ts';
import type { FileEpochs } from './file-epochs.ts';
import { encodeFinished } from './file-format.ts';
import { finishedName, partialName, temporaryName } from './file-names.ts';
import type { FsyncPolicy } from './file-segments.ts';

export interface FileFinishOptions {
  readonly directory: FileDirectory;
  readonly epochs: FileEpochs;
  readonly fsync: FsyncPolicy;
  readonly replica: string;
  readonly seal: Seal | undefined;
}

/**
 * Turns the files of a run that has its final line into the file of a finished one. Whoever finds that this was left
 * undone may do it: all of them write the same.
 */
export class FileFinish {
  readonly #options: FileFinishOptions;

  constructor(options: FileFinishOptions) {
    this.#options = options;
  }

  /** False when somebody else has done it. `end` and `damage` are what the finished run says. */
  finish(run: RunId, epoch: number, end: RunEnd): { readonly done: boolean; readonly damage?: Damage } {
    if (epoch > 1) return this.#merge(run, epoch, end);
    return { done: this.#options.directory.rename(partialName(run, 1), finishedName(run)) };
  }

  #merge(run: RunId, epoch: number, end: RunEnd): { readonly done: boolean; readonly damage?: Damage } {
    const { directory, epochs, fsync, replica, seal } = this.#options;
    const image = epochs.read(run, epoch);
    if (!image) return { done: false };
    const isWhole = image.end !== undefined || end.status !== 'complete';
    const stored: RunEnd = isWhole ? (image.end ?? end) : { ...end, status: 'recovered_from_partial' };
    const temporary = temporaryName(run, replica);
    directory.replace(temporary, encodeFinished(run, image, stored, seal), fsync !== 'never');
    directory.rename(temporary, finishedName(run));
    // In this order: a reader takes the first file's presence as proof that the later ones were still there.
    for (let old = 1; old <= epoch; old++) directory.remove(partialName(run, old));
    return image.damage ? { done: true, damage: image.damage } : { done: true };
  }
}
