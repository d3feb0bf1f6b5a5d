import type { Time } from '../lib/time.ts';

/** Something with records to store. */
export interface Sweepable {
  /** Stores what is due. Must request its next turn itself and must not throw. */
  sweep(now_ms: number): void;
}

/**
 * Decides when journals are stored, with one timer per process that runs only while a journal has something to store.
 * All runs due together reach the store in one turn, so that it can write them as one batch.
 */
export class CheckpointScheduler {
  readonly interval_ms: number;
  readonly time: Time;
  /** Shared by all runs, because one store answers them all. */
  readonly cadence: CheckpointCadence;
  #due = new Set<Sweepable>();
  #urgent = new Set<Sweepable>();
  #ticking: boolean = false;

  constructor(options: { readonly interval_ms: number; readonly time: Time }) {
    this.interval_ms = options.interval_ms;
    this.time = options.time;
    this.cadence = new CheckpointCadence(options.interval_ms);
  }

  /** Sweeps `item` at the next tick, within one interval. */
  later(item: Sweepable): void {
    this.#due.add(item);
    if (this.#ticking) return;
    this.#ticking = true;
    this.time.after(this.interval_ms, () => this.#tick());
  }

  /** Sweeps `item` at the end of this turn, so that events recorded together are stored together. */
  soon(item: Sweepable): void {
    if (this.#urgent.size === 0) queueMicrotask(() => this.#sweepUrgent());
    this.#urgent.add(item);
  }

  #tick(): void {
    this.#ticking = false;
    const due = this.#due;
    this.#due = new Set();
    this.#sweep(due);
  }

  #sweepUrgent(): void {
    const urgent = this.#urgent;
    this.#urgent = new Set();
    this.#sweep(urgent);
  }

  #sweep(items: ReadonlySet<Sweepable>): void {
    const now_ms = this.time.now();
    for (const item of items) item.sweep(now_ms);
  }
}

/** The largest share of the time that one run may keep the store busy. */
const BUSY_PART_MAX = 1 / 4;
/** Upper limit for the stretch of the interval. */
const STRETCH_MAX = 10;
/** Weight of the latest answer in the average. */
const WEIGHT = 0.2;

/**
 * How long journals wait before they are stored: the configured interval, or longer while the store answers slowly, so
 * that a slow store gets fewer and larger batches.
 */
export class CheckpointCadence {
  readonly #interval_ms: number;
  #latency_ms = 0;

  constructor(interval_ms: number) {
    this.#interval_ms = interval_ms;
  }

  /** Factor from 1 to 10 by which the interval is stretched now. */
  get stretch(): number {
    return Math.min(Math.max(this.#latency_ms / BUSY_PART_MAX / this.#interval_ms, 1), STRETCH_MAX);
  }

  /** Records how long an append took, capped so that one outlier doesn't slow everything down for long. */
  observe(latency_ms: number): void {
    const counted_ms = Math.min(latency_ms, this.#interval_ms * STRETCH_MAX * BUSY_PART_MAX);
    this.#latency_ms += WEIGHT * (counted_ms - this.#latency_ms);
  }
}
