import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Time } from '../../src/lib/time.ts';

interface Timer {
  readonly at_ms: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Time that stands still during computation and then jumps to the next timer. */
export class VirtualTime implements Time {
  #now_ms = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now_ms;
  }

  wall(): number {
    return 1_700_000_000_000 + Math.floor(this.#now_ms);
  }

  after(delay_ms: number, callback: () => void): () => void {
    const timer: Timer = { at_ms: this.#now_ms + delay_ms, order: this.#order++, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Advances time as if the process were stopped: nothing runs meanwhile, and all timers that become due are late. */
  skip(delay_ms: number): void {
    this.#now_ms += delay_ms;
  }

  /** Runs timers in order until `work` settles; fails if no timer is left to make it settle. */
  async drive<Result>(work: Promise<Result>, limit_ms = 24 * 60 * 60 * 1000): Promise<Result> {
    let settled = false;
    const watched = work.finally(() => {
      settled = true;
    });
    watched.catch(() => {});
    for (;;) {
      await nextTurn();
      if (settled) return watched;
      const next = this.#next();
      if (!next) throw new Error('everything waits for something that will never happen');
      if (next.at_ms > limit_ms) throw new Error(`nothing settled within ${limit_ms} ms of virtual time`);
      this.#timers.delete(next);
      this.#now_ms = Math.max(this.#now_ms, next.at_ms);
      next.callback();
    }
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (!next || timer.at_ms < next.at_ms || (timer.at_ms === next.at_ms && timer.order < next.order))
        next = timer;
    }
    return next;
  }
}
