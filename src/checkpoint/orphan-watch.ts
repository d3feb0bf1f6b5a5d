import type { Orphan, RunId } from './store.ts';

/** What is remembered while there are more orphans than one listing names. */
const WATCHED_MAX = 10_000;

interface Sighting {
  readonly epoch: number;
  readonly since_ms: number;
}

/**
 * For how long orphans have been orphans, by this replica's own monotonic clock: how long ago their replicas died
 * cannot be known across machines whose clocks differ, and each of their clients may be on its way back.
 */
export class OrphanWatch {
  readonly #after_ms: number;
  #sightings = new Map<RunId, Sighting>();

  /** `after_ms`: how long an orphan is watched before it is due. */
  constructor(after_ms: number) {
    this.#after_ms = after_ms;
  }

  /**
   * Takes a listing of orphans and returns those of them that are due. `all`: the listing names every orphan there
   * is, so that any other run has found somebody.
   */
  due(orphans: readonly Orphan[], all: boolean, now_ms: number): readonly Orphan[] {
    const sightings = new Map(all ? [] : this.#sightings);
    for (const { run, epoch } of orphans) {
      const known = this.#sightings.get(run);
      // Under another epoch it was somebody's in the meantime, and is an orphan anew.
      const sighting = known?.epoch === epoch ? known : { epoch, since_ms: now_ms };
      sightings.delete(run);
      sightings.set(run, sighting);
    }
    for (const run of sightings.keys()) {
      if (sightings.size <= WATCHED_MAX) break;
      sightings.delete(run);
    }
    this.#sightings = sightings;
    return orphans.filter(({ run }) => this.#isDue(run, now_ms));
  }

  /** The orphan is watched from the beginning again. */
  forget(run: RunId): void {
    this.#sightings.delete(run);
  }

  #isDue(run: RunId, now_ms: number): boolean {
    const sighting = this.#sightings.get(run);
    return sighting !== undefined && now_ms - sighting.since_ms >= this.#after_ms;
  }
}
