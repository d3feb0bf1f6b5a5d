import type { RedisLeases } from './leases.ts';
import type { ListedRun, RedisRunLists } from './run-index.ts';
import type { RedisRuns } from './runs.ts';

/**
 * Compares the runs that this replica delivers with what Redis says it delivers. Redis may come back with an older
 * state in which a finished run is still running. While this replica lives, no other would touch that run and its
 * readers would wait, so it is handed over to clients and the salvage.
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

  /** Rejects if Redis fails; the next call compares the rest. */
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
    // This replica may have acquired the run while the list was read.
    if (this.#leases.delivers(listed)) return;
    const isHeld = log && !log.end && log.epoch === listed.epoch && log.holder === this.#replica;
    if (isHeld) await this.#leases.handBack(log);
    await this.#lists.remove(listed);
  }
}
