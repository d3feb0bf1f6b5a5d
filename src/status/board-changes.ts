import type { BoardRun } from './board-run.ts';
import type { FeedEntry, FeedUpdate, RunProgress, TimelineEntry } from './snapshot.ts';

/** What happens in a second; beyond that a snapshot of everything is less. */
const CHANGES_MAX = 5000;

type Told = Pick<RunProgress, 'characters' | 'tool_calls'>;

/** What has changed on a board since it was last read. */
export class BoardChanges {
  #runs = new Set<BoardRun>();
  #entries: FeedEntry[] = [];
  #told = new Map<number, Told>();
  #overflown: boolean = false;

  add(run: BoardRun, entry: TimelineEntry): void {
    if (this.#overflown) return;
    this.#runs.add(run);
    this.#entries.push({ ...entry, key: run.key, run: run.run });
    if (this.#entries.length > CHANGES_MAX) this.#overflown = true;
  }

  /**
   * What there is to tell, or undefined where it was too much to remember. Either way it is forgotten, and what the
   * live runs have said by now counts as told.
   */
  collect(live: Iterable<BoardRun>): Omit<FeedUpdate, 'now_ms' | 'status'> | undefined {
    const [runs, entries, told, overflown] = [this.#runs, this.#entries, this.#told, this.#overflown];
    this.#runs = new Set();
    this.#entries = [];
    this.#told = new Map();
    this.#overflown = false;

    const progress: RunProgress[] = [];
    for (const run of live) {
      const { key, characters, tool_calls } = run;
      const before = told.get(key);
      this.#told.set(key, { characters, tool_calls });
      const isSame = before?.characters === characters && before.tool_calls === tool_calls;
      if (!isSame && !runs.has(run)) progress.push({ key, characters, tool_calls });
    }
    if (overflown) return undefined;
    const changed = Array.from(runs, (run) => run.summary()).sort((one, other) => one.key - other.key);
    return {
      ...(changed.length > 0 && { changed }),
      ...(progress.length > 0 && { progress }),
      ...(entries.length > 0 && { entries }),
    };
  }
}
