import { decodeEntry, newestFirst, RUNS_INDEXED_MAX } from '../run-index.ts';
import type { Owner, RunId } from '../store.ts';
import { DirectoryCursor } from './directory-cursor.ts';
import type { FileDirectory } from './file-directory.ts';
import { finishedName, partialName } from './file-names.ts';
import { isCode } from './file-system.ts';

/** After that many directory entries a pass of the sweep ends, with the owner that it is at. */
const ENTRIES_PER_PASS = 500;
/** An owner's entries are counted when one process has added that many, and the oldest removed that are too many. */
const ADDED_UNCOUNTED_MAX = 64;
/** Owners whose additions are counted. */
const OWNERS_MAX = 10_000;

export interface FileRunIndexOptions {
  /** Of the index. */
  readonly directory: FileDirectory;
  /** Of the runs. */
  readonly runs: FileDirectory;
}

/**
 * The runs of each owner, as the writing thread keeps them: a directory per owner with an empty file per run, whose name is
 * the entry. No process ever has to rewrite what another one adds to.
 */
export class FileRunIndex {
  readonly #directory: FileDirectory;
  readonly #runs: FileDirectory;
  readonly #owners: DirectoryCursor;
  readonly #uncounted = new Map<Owner, number>();

  constructor({ directory, runs }: FileRunIndexOptions) {
    this.#directory = directory;
    this.#runs = runs;
    this.#owners = new DirectoryCursor(directory);
  }

  add(owner: Owner, entry: string): void {
    const fd = this.#create(owner, entry);
    if (fd !== undefined) this.#directory.fs.closeSync(fd);
    const uncounted = (this.#uncounted.get(owner) ?? ADDED_UNCOUNTED_MAX) + 1;
    if (this.#uncounted.size >= OWNERS_MAX) this.#uncounted.clear();
    this.#uncounted.set(owner, uncounted < ADDED_UNCOUNTED_MAX ? uncounted : 0);
    if (uncounted >= ADDED_UNCOUNTED_MAX) this.#trim(owner);
  }

  list(owner: Owner): readonly string[] {
    return this.#directory.within(owner).names();
  }

  forget(owner: Owner, entries: readonly string[]): void {
    const own = this.#directory.within(owner);
    for (const entry of entries) own.remove(entry);
  }

  /** Removes the entry of a run that was purged. */
  purge(owner: Owner, run: RunId): void {
    const isPurged = (entry: string) => decodeEntry(entry)?.run === run && this.#isGone(entry);
    this.forget(owner, this.list(owner).filter(isPurged));
  }

  /** One pass: removes entries whose runs are gone, and directories in which nothing is left. */
  sweep(): void {
    let seen = 0;
    this.#owners.advance(ENTRIES_PER_PASS, (name) => {
      seen += isOwner(name) ? this.#sweepOwner(name) : 1;
      return seen < ENTRIES_PER_PASS;
    });
  }

  close(): void {
    this.#owners.close();
  }

  /** How many entries it looked at. */
  #sweepOwner(owner: Owner): number {
    const entries = this.list(owner);
    this.forget(
      owner,
      entries.filter((entry) => this.#isGone(entry)),
    );
    this.#directory.removeIfEmpty(owner);
    return entries.length + 1;
  }

  #create(owner: Owner, entry: string): number | undefined {
    const own = this.#directory.within(owner);
    try {
      return own.create(entry);
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw error;
      this.#directory.make(owner);
      return own.create(entry);
    }
  }

  #trim(owner: Owner): void {
    const runs = this.list(owner).flatMap((entry) => decodeEntry(entry) ?? []);
    if (runs.length <= RUNS_INDEXED_MAX) return;
    const surplus = runs.sort(newestFirst).slice(RUNS_INDEXED_MAX);
    this.forget(
      owner,
      surplus.map(({ entry }) => entry),
    );
  }

  #isGone(entry: string): boolean {
    const run = decodeEntry(entry)?.run;
    if (run === undefined) return false;
    // Asked twice, because it may be finished meanwhile.
    const names = [finishedName(run), partialName(run, 1), finishedName(run)];
    return !names.some((name) => this.#runs.has(name));
  }
}

const isOwner = (name: string): name is Owner => /^[\da-f]{64}$/.test(name);
