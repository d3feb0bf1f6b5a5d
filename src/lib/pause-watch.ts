import type { Time } from './time.ts';

/** How many times a watch looks at the clock within the shortest pause that it has to notice. */
const LOOKS_PER_PAUSE = 3;

/**
 * Notices that this process was stopped, or its event loop blocked: a timer that was due long ago has not fired, or fires
 * late. Whatever else was due meanwhile fires late as well, so no timeout proves anything about the other side.
 * Looks only while a run needs it.
 */
export class PauseWatch {
  readonly #time: Time;
  readonly #pause_ms: number;
  #watchers = 0;
  #looked_ms = 0;
  #resumed_ms = Number.NEGATIVE_INFINITY;
  #cancelTimer = () => {};

  /** `pause_ms`: the shortest pause that counts. */
  constructor(time: Time, pause_ms: number) {
    this.#time = time;
    this.#pause_ms = pause_ms;
  }

  /** From now on pauses are noticed, until {@link leave} was called as often as this. */
  enter(): void {
    if (this.#watchers++ > 0) return;
    this.#looked_ms = this.#time.now();
    this.#wait();
  }

  leave(): void {
    if (--this.#watchers === 0) this.#cancelTimer();
  }

  /** When the last pause ended, in milliseconds of `time.now()`; minus infinity if there was none. */
  resumedAt(now_ms: number): number {
    if (this.#watchers > 0 && now_ms - this.#looked_ms >= this.#pause_ms) {
      this.#resumed_ms = now_ms;
      this.#looked_ms = now_ms;
    }
    return this.#resumed_ms;
  }

  #wait(): void {
    this.#cancelTimer = this.#time.after(this.#pause_ms / LOOKS_PER_PAUSE, () => {
      const now_ms = this.#time.now();
      this.resumedAt(now_ms);
      this.#looked_ms = now_ms;
      this.#wait();
    });
  }
}
