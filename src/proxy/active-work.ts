import { sleep, type Time } from '../time.ts';

/** What is under way and has to end before the process may. */
export class ActiveWork {
  readonly #promises = new Set<Promise<void>>();

  get count(): number {
    return this.#promises.size;
  }

  /** `work` must not reject. */
  async track(work: Promise<void>): Promise<void> {
    this.#promises.add(work);
    try {
      await work;
    } finally {
      this.#promises.delete(work);
    }
  }

  /** Resolves when nothing is under way, or after `limit_ms`. */
  async settled(time: Time, limit_ms: number): Promise<void> {
    const done = new AbortController();
    await Promise.race([Promise.allSettled(this.#promises), sleep(time, limit_ms, done.signal)]);
    done.abort();
  }
}
