import type { RedisLeases } from './leases.ts';
import type { ListedRun, RedisRunLists } from './run-index.ts';
import type { RedisRuns } from './runs.ts';

/**
 * Compares what Redis says this replica delivers with what it delivers. Redis may come back with an older state, in which a
 * run is running that has ended since: as long as its replica gives signs of life, no other one would ever touch it, and
 * its readers would wait. Such a run is handed over, so that a client or the salvage can have it.
 */
export class Reconciliation {
  readonly #leases: RedisLeases;
  readonly #lists: RedisRunLists;
  readonly #runs: RedisRuns;
  readonly #replica: string;
  #comparing: Promise<void> | undefined;

  constructor(leases: RedisLeases, lists: RedisRunLists, runs: RedisRuns, replica: string) {
    this.#leases = leases;
    this.#lists = lists;
    this.#runs = runs;
    this.#replica = replica;
  }

  /** Rejects when Redis fails; what was not compared then is compared the next time. */
  compare(): Promise<void> {
    this.#comparing ??= this.#compare().finally(() => {
      this.#comparing = undefined;
    });
    return this.#comparing;
  }

  async #compare(): Promise<void> {
    for await (const listed of this.#lists.listed(this.#replica)) {
      for (const one of listed) if (!this.#leases.delivers(one)) await this.#handBack(one);
    }
  }

  async #handBack(listed: ListedRun): Promise<void> {
    const log = await this.#runs.whole(listed.run);
    // It may have been taken while the list was read.
    if (this.#leases.delivers(listed)) return;
    const isHeld = log && !log.end && log.epoch === listed.epoch && log.holder === this.#replica;
    if (isHeld) await this.#leases.handBack(log);
    await this.#lists.remove(listed);
  }
}
