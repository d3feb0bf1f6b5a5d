import type { RunHeader } from '../journal.ts';
import { entryOf, type IndexedRun, indexedRuns, RUNS_INDEXED_MAX, type RunIndex } from '../run-index.ts';
import type { Seal } from '../seal.ts';
import type { Owner, RunId } from '../store.ts';
import type { FileWriter } from './file-writer.ts';

export interface FileRunListOptions {
  readonly writer: FileWriter;
  readonly seal: Seal | undefined;
}

/** The index of a file store on the thread that serves. */
export class FileRunList implements RunIndex {
  readonly #writer: FileWriter;
  readonly #seal: Seal | undefined;

  constructor({ writer, seal }: FileRunListOptions) {
    this.#writer = writer;
    this.#seal = seal;
  }

  /** Is not waited for: a run that cannot be listed goes on. */
  add(owner: Owner, run: RunId, header: RunHeader): void {
    const entry = entryOf(owner, run, header, this.#seal);
    void this.#writer.request('index_run', { owner, entry }).catch(ignore);
  }

  async list(owner: Owner, thread?: string): Promise<readonly IndexedRun[]> {
    const entries = await this.#writer.request('indexed_runs', { owner });
    // Until they are counted there may be more.
    return indexedRuns(entries, owner, thread, this.#seal).slice(0, RUNS_INDEXED_MAX);
  }

  async forget(owner: Owner, entries: readonly IndexedRun[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#writer.request('forget_runs', { owner, entries: entries.map(({ entry }) => entry) });
  }
}

const ignore = () => {};
