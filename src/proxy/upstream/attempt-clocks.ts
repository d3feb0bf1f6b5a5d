import { type Deadline, type Limits, nextDeadline } from '../../interrupts/clocks.ts';
import type { Clock } from '../../interrupts/interruption.ts';
import type { Time } from '../../lib/time.ts';

/** The clocks of one attempt: calls back when the provider has been silent, or has got nowhere, for too long. */
export class AttemptClocks {
  readonly #limits: Limits;
  readonly #time: Time;
  readonly #onExpired: (clock: Clock) => void;
  readonly #started_ms: number;
  #byte_ms: number | undefined;
  #progress_ms: number | undefined;
  #reasoning = false;
  #thought: boolean = false;
  /** The answer is whole, and what may still follow it is waited for until then. */
  #finish_at_ms: number | undefined;
  #isStopped = false;
  #cancelTimer: () => void = () => {};

  constructor(limits: Limits, time: Time, onExpired: (clock: Clock) => void) {
    this.#limits = limits;
    this.#time = time;
    this.#onExpired = onExpired;
    this.#started_ms = time.now();
  }

  /** When the last bytes came. */
  get byte_ms(): number {
    return this.#byte_ms ?? this.#started_ms;
  }

  /** The model was seen to think. */
  get thought(): boolean {
    return this.#thought;
  }

  /** Since something was said last; since the beginning, if nothing was. */
  get silent_ms(): number {
    return this.#time.now() - (this.#progress_ms ?? this.#started_ms);
  }

  start(): void {
    this.#rearm();
  }

  /** The response has begun. */
  answered(): void {
    this.bytesCame();
    // Other clocks run from here, and one of them may be due before the one that was waited for.
    this.#rearm();
  }

  bytesCame(): void {
    this.#byte_ms = this.#time.now();
  }

  /** A delta said something. `reasoning`: the model is still thinking. */
  progressed(reasoning: boolean): void {
    const answers = this.#reasoning && !reasoning;
    this.#progress_ms = this.#byte_ms;
    this.#reasoning = reasoning;
    this.#thought ||= reasoning;
    // The clock that runs now is shorter than the one the timer was set by.
    if (answers) this.#rearm();
  }

  /** The answer is whole; waits no longer than this for what may still follow. */
  finishWithin(delay_ms: number): void {
    this.#finish_at_ms = this.#time.now() + delay_ms;
    this.#rearm();
  }

  /** Stands still until the returned function is called. */
  pause(): () => void {
    const paused_ms = this.#time.now();
    this.#cancelTimer();
    return () => {
      const pause_ms = this.#time.now() - paused_ms;
      if (this.#byte_ms !== undefined) this.#byte_ms += pause_ms;
      if (this.#progress_ms !== undefined) this.#progress_ms += pause_ms;
      if (this.#finish_at_ms !== undefined) this.#finish_at_ms += pause_ms;
      this.#arm();
    };
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer();
  }

  #rearm(): void {
    this.#cancelTimer();
    this.#arm();
  }

  #arm(): void {
    if (this.#isStopped) return;
    const { at_ms } = this.#deadline();
    this.#cancelTimer = this.#time.after(Math.max(0, at_ms - this.#time.now()), () => {
      // Not re-armed with every byte: the deadline is looked up when the timer fires.
      const { clock, at_ms: deadline_ms } = this.#deadline();
      if (this.#time.now() >= deadline_ms) this.#onExpired(clock);
      else this.#arm();
    });
  }

  #deadline(): Deadline {
    if (this.#finish_at_ms !== undefined) return { clock: 'progress', at_ms: this.#finish_at_ms };
    return nextDeadline(
      {
        started_ms: this.#started_ms,
        byte_ms: this.#byte_ms,
        progress_ms: this.#progress_ms,
        reasoning: this.#reasoning,
        thought: this.#thought,
      },
      this.#limits,
    );
  }
}
