import type { TimelineEntry } from './snapshot.ts';

/** A run has a handful of entries; one that is tried a hundred times shows how it began and how it goes on. */
const ENTRIES_MAX = 60;
const FIRST_KEPT = 12;

/** What happened to one run, in order and in bounded memory. */
export class Timeline {
  readonly #entries: TimelineEntry[] = [];
  #omitted = 0;

  get entries(): readonly TimelineEntry[] {
    return this.#entries;
  }

  get omitted(): number {
    return this.#omitted;
  }

  add(entry: TimelineEntry): void {
    this.#entries.push(entry);
    if (this.#entries.length <= ENTRIES_MAX) return;
    this.#entries.splice(FIRST_KEPT, 1);
    this.#omitted++;
  }
}
