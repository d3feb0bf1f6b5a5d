import type { Time } from './time.ts';

/** How often the watch checks the clock within the shortest relevant pause. */
const LOOKS_PER_PAUSE = 3;

/**
 * Detects that this process was suspended or its event loop blocked: a timer is overdue or fires late. All other timers
 * are late then, too, so no timeout says anything about the other side. Runs only while a run needs it.
 */
export class PauseWatch {
  readonly #time: Time;
  readonly #pause_ms: number;
  #watchers = 0;
  #looked_ms = 0;
  #resumed_ms = Number.NEGATIVE_INFINITY;
  #cancelTimer = () => {};

  /** `pause_ms`: the shortest pause to detect. */
  constructor(time: Time, pause_ms: number) {
    this.#time = time;
    this.#pause_ms = pause_ms;
  }

  /** Starts detecting pauses, until {@link leave} was called as often as this method. */
  enter(): void {
    if (this.#watchers++ > 0) return;
    this.#looked_ms = this.#time.now();
    this.#wait();
  }

  leave(): void {
    if (--this.#watchers === 0) this.#cancelTimer();
  }

  /** When the last pause ended, on the clock of `time.now()`; -Infinity if there was none. */
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
