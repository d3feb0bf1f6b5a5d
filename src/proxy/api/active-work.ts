import { inTime, type Time } from '../../lib/time.ts';

/** What is under way and has to end before the process may. */
export class ActiveWork {
  readonly #promises = new Set<Promise<unknown>>();

  get count(): number {
    return this.#promises.size;
  }

  async track<Result>(work: Promise<Result>): Promise<Result> {
    this.#promises.add(work);
    try {
      return await work;
    } finally {
      this.#promises.delete(work);
    }
  }

  /** Resolves when nothing is under way, or after `limit_ms`. */
  async settled(time: Time, limit_ms: number): Promise<void> {
    await inTime(Promise.allSettled(this.#promises), time, limit_ms);
  }
}
