import type { RunHeader } from '../journal.ts';
import { entryOf, type IndexedRun, indexedRuns, RUNS_INDEXED_MAX, type RunIndex } from '../run-index.ts';
import type { Owner, RunEnd, RunId, Takeover } from '../store.ts';
import type { MemoryNoteTable } from './notes.ts';

const UNITS_MAX = 256 * 1024 * 1024;

export interface MemoryRun {
  readonly owner: Owner;
  epoch: number;
  /** The store that delivers the run; undefined once released. */
  holder: { readonly isOpen: boolean } | undefined;
  readonly takeovers: Takeover[];
  end: RunEnd | undefined;
  /** Encoded, because a few strings take far less heap than an object per event. */
  readonly lines: string[];
  /** The sequence number of each line, so that lines before the cursor needn't be decoded. */
  readonly seqs: number[];
  units: number;
  seq: number;
  finished_ms: number;
}

/** Shared by a deployment's memory stores, each of which stands for a replica. */
export class MemoryRuns {
  readonly notes: MemoryNoteTable = new Map();
  readonly index = new MemoryRunIndex();
  readonly #units_max: number;
  readonly #runs = new Map<RunId, MemoryRun>();
  /** Finished runs, oldest first. */
  readonly #finished = new Set<RunId>();
  /** The complete ones among them, oldest first. */
  readonly #complete = new Set<RunId>();
  #units = 0;

  /** `units_max`: UTF-16 units of all runs together; 256 Mi by default. */
  constructor(units_max: number = UNITS_MAX) {
    this.#units_max = units_max;
  }

  get(id: RunId): MemoryRun | undefined {
    return this.#runs.get(id);
  }

  add(id: RunId, run: MemoryRun): void {
    this.#runs.set(id, run);
  }

  finish(id: RunId, run: MemoryRun, end: RunEnd, now_ms: number): void {
    run.end = end;
    run.finished_ms = now_ms;
    this.#finished.add(id);
    if (end.status === 'complete') this.#complete.add(id);
  }

  /** Throws if running runs alone exceed the limit. */
  append(run: MemoryRun, lines: readonly string[]): void {
    const units = lines.reduce((sum, line) => sum + line.length, 0);
    for (const id of this.#finished) {
      if (this.#units + units <= this.#units_max) break;
      this.#drop(id);
    }
    if (this.#units + units > this.#units_max) throw new Error('the memory store is full of running runs');
    this.#units += units;
    run.units += units;
    run.lines.push(...lines);
  }

  /** Drops runs that finished at or before `until_ms`, and complete ones at or before `complete_until_ms`. */
  dropFinished(until_ms: number, complete_until_ms: number): void {
    this.#dropOld(this.#finished, until_ms);
    this.#dropOld(this.#complete, complete_until_ms);
  }

  /** Drops the run if it is finished. */
  purge(id: RunId): void {
    if (this.#finished.has(id)) this.#drop(id);
  }

  *running(): Iterable<readonly [RunId, MemoryRun]> {
    for (const entry of this.#runs) if (!entry[1].end) yield entry;
  }

  #dropOld(ids: ReadonlySet<RunId>, until_ms: number): void {
    for (const id of ids) {
      const run = this.#runs.get(id);
      if (run && run.finished_ms > until_ms) return;
      this.#drop(id);
    }
  }

  #drop(id: RunId): void {
    const run = this.#runs.get(id);
    this.#units -= run?.units ?? 0;
    if (run) this.index.remove(run.owner, id);
    this.#runs.delete(id);
    this.#finished.delete(id);
    this.#complete.delete(id);
  }
}

/** The run index shared by a deployment's memory stores. An entry is removed with its run. */
export class MemoryRunIndex implements RunIndex {
  /** By owner, in insertion order. */
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
