import { inTime, sleep, type Time } from '../lib/time.ts';
import { type SalvagedRun, salvagedRun } from './salvaged-run.ts';
import {
  AcquireRefusedError,
  type Lease,
  type Orphan,
  type RunId,
  StaleLeaseError,
  type Store,
} from './store.ts';

/** Sweeps per waiting period, so that no orphan waits much longer than necessary. */
const SWEEPS_PER_WAIT = 4;
const SWEEP_MS_MIN = 100;
const SWEEP_MS_MAX = 15_000;
/** Random spread, so that replicas started together don't query the store together. */
const SWEEP_SPREAD = 0.25;
/** Limits per sweep. */
const ORPHANS_PER_SWEEP = 1000;
const RUNS_PER_SWEEP = 100;
/** After this many failures, the sweep leaves the store alone until the next one. */
const FAILURES_PER_SWEEP = 3;
/** Reports are limited, because a store that is down fails in the same way at every sweep. */
const REPORT_EVERY_MS = 60_000;
const CLOSE_WAIT_MAX_MS = 2000;

/**
 * `begun`: the run continues, here or elsewhere. `later`: there is no capacity now. `never`: the run can't continue
 * beyond what is stored.
 */
export type Continuation = 'begun' | 'later' | 'never';

/** Continues orphans whose client hasn't come back. */
export interface UnattendedOptions {
  /** How long an orphan waits for its client first. */
  readonly after_ms: number;
  /** How long after its first sighting an orphan that continues `later` is kept from being finalised. */
  readonly until_ms: number;
  /** Called again for the same orphan after `later` and after a rejection. */
  begin(orphan: Orphan): Promise<Continuation>;
}

export interface SalvageOptions {
  readonly store: Store;
  readonly time: Time;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** How long an orphan waits for its client. */
  readonly after_ms: number;
  /** If absent, every orphan is finalised. */
  readonly unattended?: UnattendedOptions;
  /**
   * Called before the run is sealed. If it rejects, the run is left for another sweep. If sealing then fails, it is
   * called again for the same run, possibly by another replica.
   */
  keep(salvaged: SalvagedRun): Promise<void>;
  /** Called once the run is sealed. */
  onSalvaged(salvaged: SalvagedRun): void;
  /** Called at most once a minute. `unreported`: failures since the previous call. */
  onError(error: unknown, unreported: number): void;
}

/**
 * Finalises runs whose replica died and whose client didn't come back, so that no partial answer appears to be still
 * running. Runs that can continue without a client do. Every replica sweeps; the store's compare-and-set gives each
 * orphan to one.
 */
export class Salvage {
  readonly #options: SalvageOptions;
  readonly #watch: OrphanWatch;
  /** Acquired but not sealed yet, because an intermediate step failed. */
  readonly #claims = new Map<RunId, Lease>();
  readonly #closed = new AbortController();
  #sweeping: Promise<void> = Promise.resolve();
  #reported_ms = Number.NEGATIVE_INFINITY;
  #unreported = 0;

  constructor(options: SalvageOptions) {
    this.#options = options;
    this.#watch = new OrphanWatch(options.after_ms, options.unattended?.after_ms);
  }

  /** Sweeps for orphans at once, and then periodically. */
  start(): void {
    this.#sweeping = this.#run();
  }

  /** Resolves once all work has stopped, or after two seconds. */
  async close(): Promise<void> {
    this.#closed.abort();
    const ended = this.#sweeping.then(() => this.#releaseClaims());
    await inTime(ended, this.#options.time, CLOSE_WAIT_MAX_MS);
  }

  async #run(): Promise<void> {
    const { time, random, after_ms, unattended } = this.#options;
    const wait_ms = Math.min(after_ms, unattended?.after_ms ?? after_ms);
    const interval_ms = Math.min(Math.max(wait_ms / SWEEPS_PER_WAIT, SWEEP_MS_MIN), SWEEP_MS_MAX);
    while (!this.#closed.signal.aborted) {
      await this.#sweep();
      await sleep(time, interval_ms * (1 + SWEEP_SPREAD * (2 * random() - 1)), this.#closed.signal);
    }
  }

  async #sweep(): Promise<void> {
    let failures = 0;
    const attempt = async (step: () => Promise<void>): Promise<void> => {
      if (this.#closed.signal.aborted || failures >= FAILURES_PER_SWEEP) return;
      try {
        await step();
      } catch (error) {
        failures++;
        this.#report(error);
      }
    };
    let due: readonly Orphan[] = [];
    const claimed = [...this.#claims.values()];
    await attempt(async () => {
      const orphans = await this.#options.store.orphans(ORPHANS_PER_SWEEP);
      const all = orphans.length < ORPHANS_PER_SWEEP;
      due = this.#watch.due(orphans, all, this.#options.time.now());
    });
    for (const orphan of due.slice(0, RUNS_PER_SWEEP - claimed.length)) {
      await attempt(async () => {
        if (await this.#isLeftOver(orphan)) await this.#salvage(orphan);
      });
    }
    // Earlier failures come last, because they may be permanent.
    for (const lease of claimed) await attempt(() => this.#finalise(lease));
  }

  /** Continues the orphan if possible. True if it should be finalised now. */
  async #isLeftOver(orphan: Orphan): Promise<boolean> {
    const { time, after_ms, unattended } = this.#options;
    const { run } = orphan;
    if (!unattended || this.#watch.isDeclined(run)) return true;
    const continuation = await unattended.begin(orphan);
    if (continuation === 'begun') {
      this.#watch.forget(run);
      return false;
    }
    const watched_ms = this.#watch.watched_ms(run, time.now());
    if (continuation === 'later' && watched_ms < unattended.until_ms) return false;
    this.#watch.decline(run);
    return watched_ms >= after_ms;
  }

  async #salvage({ run, owner, epoch }: Orphan): Promise<void> {
    this.#watch.forget(run);
    let lease: Lease;
    try {
      lease = await this.#options.store.acquire(run, owner, epoch);
    } catch (error) {
      // Another replica was first, or the client came back.
      if (error instanceof AcquireRefusedError) return;
      throw error;
    }
    this.#claims.set(run, lease);
    await this.#finalise(lease);
  }

  async #finalise(lease: Lease): Promise<void> {
    const { store, time } = this.#options;
    const { run, owner } = lease;
    const stored = await store.read(run, owner, 0);
    if (stored?.status === 'running' && stored.epoch === lease.epoch) {
      const salvaged = salvagedRun(run, owner, stored, time.wall());
      await this.#options.keep(salvaged);
      try {
        await store.finish(lease, salvaged.end);
        this.#options.onSalvaged(salvaged);
      } catch (error) {
        // This replica was silent for so long that another one took the run over.
        if (!(error instanceof StaleLeaseError)) throw error;
      }
    }
    this.#claims.delete(run);
  }

  /** While this replica lives, its leases block other replicas. */
  async #releaseClaims(): Promise<void> {
    await Promise.allSettled([...this.#claims.values()].map((lease) => this.#options.store.release(lease)));
  }

  #report(error: unknown): void {
    const now_ms = this.#options.time.now();
    if (now_ms - this.#reported_ms < REPORT_EVERY_MS) {
      this.#unreported++;
      return;
    }
    this.#options.onError(error, this.#unreported);
    this.#reported_ms = now_ms;
    this.#unreported = 0;
  }
}

/** Maximum number of watched orphans; there may be more than one listing contains. */
const WATCHED_MAX = 10_000;

interface Sighting {
  readonly epoch: number;
  readonly since_ms: number;
  /** The run can't continue without its client. */
  readonly isDeclined?: true;
}

/**
 * Tracks how long orphans have been seen, by this replica's monotonic clock. The time of a replica's death isn't
 * comparable across machines with different clocks, and its clients may be on their way back.
 */
export class OrphanWatch {
  readonly #after_ms: number;
  readonly #early_ms: number;
  #sightings = new Map<RunId, Sighting>();

  /**
   * `after_ms`: how long an orphan is watched before it is due. `early_ms`: the same for an orphan that wasn't
   * declined.
   */
  constructor(after_ms: number, early_ms = after_ms) {
    this.#after_ms = after_ms;
    this.#early_ms = early_ms;
  }

  /**
   * Takes a listing of orphans and returns those that are due. `all`: the listing is complete, so any other run has a
   * holder again.
   */
  due(orphans: readonly Orphan[], all: boolean, now_ms: number): readonly Orphan[] {
    const sightings = new Map(all ? [] : this.#sightings);
    for (const { run, epoch } of orphans) {
      const known = this.#sightings.get(run);
      // A new epoch means that the run had a holder in the meantime, so its time as an orphan starts again.
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

  /** Restarts the orphan's watch from the beginning. */
  forget(run: RunId): void {
    this.#sightings.delete(run);
  }

  /** The orphan is due only after the longer time, until it has a holder again or is forgotten. */
  decline(run: RunId): void {
    const sighting = this.#sightings.get(run);
    if (sighting) this.#sightings.set(run, { ...sighting, isDeclined: true });
  }

  isDeclined(run: RunId): boolean {
    return this.#sightings.get(run)?.isDeclined ?? false;
  }

  /** 0 if the run isn't watched. */
  watched_ms(run: RunId, now_ms: number): number {
    return now_ms - (this.#sightings.get(run)?.since_ms ?? now_ms);
  }

  #isDue(run: RunId, now_ms: number): boolean {
    const wait_ms = this.isDeclined(run) ? this.#after_ms : this.#early_ms;
    return this.#sightings.has(run) && this.watched_ms(run, now_ms) >= wait_ms;
  }
}
