import type { Orphan, Owner, RunId } from '../store.ts';
import { DirectoryCursor } from './directory-cursor.ts';
import type { FileDirectory } from './file-directory.ts';
import type { FileEpochs } from './file-epochs.ts';
import type { Opening } from './file-format.ts';
import { holderOf, signOfLife } from './file-holder.ts';
import { finishedName, parseFileName, partialName } from './file-names.ts';

/** Names looked at in one call, and runs looked into: it holds up the writing thread for tens of milliseconds at most. */
const ENTRIES_PER_CALL = 10_000;
const DISCOVERIES_PER_CALL = 500;
/** Running runs that are remembered. More of them are found once some of these have come to an end. */
const CANDIDATES_MAX = 10_000;

interface Candidate {
  readonly owner: Owner;
  readonly epoch: number;
  readonly opening: Opening | undefined;
}

export interface FileOrphansOptions {
  readonly directory: FileDirectory;
  readonly epochs: FileEpochs;
  readonly lease_ms: number;
  readonly candidates_max?: number;
}

/**
 * Finds runs that nobody holds. What it has read about a running run it remembers, so that a call costs a look at the
 * names of the directory and at the signs of life, however large the runs are.
 */
export class FileOrphans {
  readonly #options: FileOrphansOptions;
  readonly #cursor: DirectoryCursor;
  readonly #candidates_max: number;
  readonly #candidates = new Map<RunId, Candidate>();
  /** Candidates whose files were met in this round of the directory. */
  readonly #met = new Set<RunId>();

  constructor(options: FileOrphansOptions) {
    this.#options = options;
    this.#candidates_max = options.candidates_max ?? CANDIDATES_MAX;
    this.#cursor = new DirectoryCursor(options.directory);
  }

  find(limit: number): readonly Orphan[] {
    this.#goOn();
    const orphans: Orphan[] = [];
    const alive = new Map<string, boolean>();
    for (const [run, known] of this.#candidates) {
      if (orphans.length === limit) break;
      if (this.#isHeld(run, known, alive)) continue;
      const candidate = this.#look(run, known.epoch, known);
      if (!candidate) {
        this.#candidates.delete(run);
        continue;
      }
      this.#candidates.set(run, candidate);
      const { owner, epoch } = candidate;
      if (!this.#isHeld(run, candidate, alive)) orphans.push({ run, owner, epoch });
    }
    return orphans;
  }

  close(): void {
    this.#cursor.close();
  }

  #goOn(): void {
    let discoveries = 0;
    const isRound = this.#cursor.advance(ENTRIES_PER_CALL, (name) => {
      if (this.#discover(name)) discoveries++;
      return discoveries < DISCOVERIES_PER_CALL;
    });
    if (!isRound) return;
    // Most runs come to their end while their replica lives, and nobody looks at them again.
    for (const run of this.#candidates.keys()) if (!this.#met.has(run)) this.#candidates.delete(run);
    this.#met.clear();
  }

  /** True when it had to look into a run. */
  #discover(name: string): boolean {
    const file = parseFileName(name);
    if (file?.kind !== 'partial') return false;
    const { run, epoch } = file;
    const known = this.#candidates.get(run);
    if (!known && this.#candidates.size >= this.#candidates_max) return false;
    this.#met.add(run);
    if (known && known.epoch >= epoch) return false;
    const candidate = this.#look(run, epoch, known);
    if (candidate) this.#candidates.set(run, candidate);
    return true;
  }

  /** The run as it is now; undefined when it is finished or gone. `epoch`: one that it has reached. */
  #look(run: RunId, epoch: number, known: Candidate | undefined): Candidate | undefined {
    const { directory, epochs } = this.#options;
    if (!directory.has(partialName(run, epoch)) || directory.has(finishedName(run))) return undefined;
    let latest = epoch;
    while (directory.has(partialName(run, latest + 1))) latest++;
    if (known?.epoch === latest && known.opening) return known;
    const owner = known?.owner ?? epochs.opening(run, partialName(run, 1))?.owner;
    if (owner === undefined) return undefined;
    return { owner, epoch: latest, opening: epochs.opening(run, partialName(run, latest)) };
  }

  /** Signs of life are looked at once per call: the many runs of a replica share one. */
  #isHeld(run: RunId, { epoch, opening }: Candidate, alive: Map<string, boolean>): boolean {
    const sign = signOfLife(run, epoch, opening);
    if (sign === undefined) return false;
    const { directory, lease_ms } = this.#options;
    const isAlive = alive.get(sign) ?? holderOf(directory.modified_ms(sign), lease_ms).state === 'alive';
    alive.set(sign, isAlive);
    return isAlive;
  }
}
