import type { RunHeader } from '../journal.ts';
import { entryOf, type IndexedRun, indexedRuns, RUNS_INDEXED_MAX, type RunIndex } from '../run-index.ts';
import type { Owner, RunId } from '../store.ts';

/** What the memory stores of one deployment have listed. An entry goes with its run. */
export class MemoryRunIndex implements RunIndex {
  /** By owner, in the order in which they were entered. */
  readonly #entries = new Map<Owner, Map<RunId, string>>();

  add(owner: Owner, run: RunId, header: RunHeader): void {
    const entries = this.#entries.get(owner) ?? new Map<RunId, string>();
    this.#entries.set(owner, entries);
    entries.set(run, entryOf(owner, run, header, undefined));
    const [oldest] = entries.keys();
    if (entries.size > RUNS_INDEXED_MAX && oldest !== undefined) entries.delete(oldest);
  }

  remove(owner: Owner, run: RunId): void {
    const entries = this.#entries.get(owner);
    entries?.delete(run);
    if (entries?.size === 0) this.#entries.delete(owner);
  }

  async list(owner: Owner, thread?: string): Promise<readonly IndexedRun[]> {
    return indexedRuns(this.#entries.get(owner)?.values() ?? [], owner, thread, undefined);
  }

  async forget(owner: Owner, entries: readonly IndexedRun[]): Promise<void> {
    for (const { run } of entries) this.remove(owner, run);
  }
}
