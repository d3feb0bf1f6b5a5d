import type { RunId } from '../store.ts';
import { DirectoryCursor } from './directory-cursor.ts';
import type { FileDirectory } from './file-directory.ts';
import type { FileEpochs } from './file-epochs.ts';
import { isCompleteAtEnd } from './file-format.ts';
import { holderOf, signOfLife } from './file-holder.ts';
import { finishedName, isReplicaName, parseFileName, partialName } from './file-names.ts';

/** Directory entries looked at in one pass: a pass holds up the writing thread for a few milliseconds at most. */
const ENTRIES_PER_PASS = 500;
export const SWEEP_EVERY_MS = 60_000;
/** A file that is not moved to its final name within that time has lost its writer. */
const TEMPORARY_MS_MAX = 600_000;
/** Signs of life are removed long after they say that a replica is dead. */
const LEASES_REMEMBERED = 100;
/** The final line of a complete run is a hundred bytes or so. */
const FINAL_LINE_BYTES_MAX = 1024;

export interface FileSweepOptions {
  readonly directory: FileDirectory;
  readonly epochs: FileEpochs;
  /** How long a run is kept after its last append. */
  readonly ttl_ms: number;
  /** The same of a complete run. */
  readonly complete_ttl_ms: number;
  readonly lease_ms: number;
}

/** Removes expired runs and what dead processes left behind, a bounded number of directory entries at a time. */
export class FileSweep {
  readonly #options: FileSweepOptions;
  readonly #cursor: DirectoryCursor;

  constructor(options: FileSweepOptions) {
    this.#options = options;
    this.#cursor = new DirectoryCursor(options.directory);
  }

  /** One pass. Runs that somebody holds are never removed. */
  pass(): void {
    this.#cursor.advance(ENTRIES_PER_PASS, (name) => {
      this.#visit(name);
      return true;
    });
  }

  close(): void {
    this.#cursor.close();
  }

  #visit(name: string): void {
    const { directory, lease_ms } = this.#options;
    const file = parseFileName(name);
    if (file?.kind === 'partial') this.#visitPartial(file.run, file.epoch, name);
    else if (file?.kind === 'finished' && this.#isExpired(name)) directory.remove(name);
    else if (file?.kind === 'temporary' && this.#isOlder(name, TEMPORARY_MS_MAX)) directory.remove(name);
    else if (isReplicaName(name) && this.#isOlder(name, LEASES_REMEMBERED * lease_ms)) directory.remove(name);
  }

  #visitPartial(run: RunId, epoch: number, name: string): void {
    const { directory, epochs, ttl_ms, lease_ms } = this.#options;
    if (directory.has(finishedName(run))) {
      // Whoever put them together died before it could remove them.
      directory.remove(name);
      return;
    }
    // The latest epoch decides about all of them.
    if (!this.#isOlder(name, ttl_ms) || directory.has(partialName(run, epoch + 1))) return;
    const sign = signOfLife(run, epoch, epochs.opening(run, name));
    if (sign !== undefined && holderOf(directory.modified_ms(sign), lease_ms).state === 'alive') return;
    // In this order: a reader takes the first file's presence as proof that the later ones were still there.
    for (let old = 1; old <= epoch; old++) directory.remove(partialName(run, old));
  }

  #isExpired(name: string): boolean {
    const { directory, ttl_ms, complete_ttl_ms } = this.#options;
    if (this.#isOlder(name, ttl_ms)) return true;
    if (!this.#isOlder(name, complete_ttl_ms)) return false;
    const tail = directory.readEnd(name, FINAL_LINE_BYTES_MAX);
    return tail !== undefined && isCompleteAtEnd(tail);
  }

  #isOlder(name: string, age_ms: number): boolean {
    const modified_ms = this.#options.directory.modified_ms(name);
    return modified_ms !== undefined && Date.now() - modified_ms >= age_ms;
  }
}
