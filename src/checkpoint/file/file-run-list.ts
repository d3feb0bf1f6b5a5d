import { type IndexedRun, indexedRuns, type RunIndex } from '../run-index.ts';
import type { Seal } from '../seal.ts';
import type { Owner } from '../store.ts';
import type { Writer } from './writer.ts';

export interface FileRunListOptions {
  readonly writer: Writer;
  readonly seal: Seal | undefined;
}

/** The file store's run index on the serving thread. */
export class FileRunList implements RunIndex {
  readonly #writer: Writer;
  readonly #seal: Seal | undefined;

  constructor({ writer, seal }: FileRunListOptions) {
    this.#writer = writer;
    this.#seal = seal;
  }

  async list(owner: Owner, thread?: string): Promise<readonly IndexedRun[]> {
    const entries = await this.#writer.request('indexed_runs', { owner });
    return indexedRuns(entries, owner, thread, this.#seal);
  }

  async forget(owner: Owner, entries: readonly IndexedRun[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#writer.request('forget_runs', { owner, runs: entries.map(({ run }) => run) });
  }
}
