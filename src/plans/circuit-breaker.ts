import type { BreakerLimits } from '../config/configuration.ts';

export const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** A failed attempt as the breaker sees it. Times in milliseconds of one monotonic clock. */
interface FailedAttempt {
  readonly began_ms: number;
  readonly now_ms: number;
  /** It had produced content before it failed. */
  readonly answered: boolean;
  readonly probe: boolean;
}

/**
 * Keeps requests away from a target that is down, and tests its recovery with one probe at a time. It needs no timer:
 * an open breaker becomes `half_open` once its time is over.
 */
export class CircuitBreaker {
  readonly #limits: BreakerLimits;
  /** The last outcomes, oldest first; true for a failure. */
  #outcomes: boolean[] = [];
  #inARow = 0;
  /** How often it has opened since it last closed; 0 while closed. */
  #openings = 0;
  #open_until_ms = 0;
  #closed_ms = Number.NEGATIVE_INFINITY;
  /** When the current probe began. */
  #probe_ms: number | undefined;

  constructor(limits: BreakerLimits) {
    this.#limits = limits;
  }

  state(now_ms: number): BreakerState {
    if (this.#openings === 0) return 'closed';
    return now_ms < this.#open_until_ms ? 'open' : 'half_open';
  }

  /** False if requests should go elsewhere: it is open, or a probe is running. */
  admits(now_ms: number): boolean {
    const state = this.state(now_ms);
    return state === 'closed' || (state === 'half_open' && !this.#isProbed(now_ms));
  }

  /** Begins an attempt. Returns true if it is the probe, whose end the caller must report. */
  begin(now_ms: number): boolean {
    if (this.state(now_ms) !== 'half_open' || this.#isProbed(now_ms)) return false;
    this.#probe_ms = now_ms;
    return true;
  }

  /** The target has answered. Returns true if that closed the breaker. */
  succeeded(now_ms: number): boolean {
    this.#inARow = 0;
    if (this.#openings === 0) {
      this.#note(false);
      return false;
    }
    this.#openings = 0;
    this.#outcomes = [];
    this.#closed_ms = now_ms;
    this.#probe_ms = undefined;
    return true;
  }

  /** Returns true if that opened the breaker, or reopened it. */
  failed({ began_ms, now_ms, answered, probe }: FailedAttempt): boolean {
    // An attempt that began before the breaker closed says nothing about the target's state since then.
    if (began_ms < this.#closed_ms) return false;
    if (this.#openings > 0) return probe && this.#probe_ms === began_ms && this.#open(now_ms);
    this.#note(true);
    // A broken connection can fail many answers at once, so they don't count as consecutive failures.
    if (!answered) this.#inARow++;
    return (this.#inARow >= this.#limits.failures || this.#failsOften) && this.#open(now_ms);
  }

  /** Frees the slot of a probe that ended without a result. */
  release(began_ms: number): void {
    if (this.#probe_ms === began_ms) this.#probe_ms = undefined;
  }

  /** An unanswered probe must not block the next one for as long as its own clocks allow. */
  #isProbed(now_ms: number): boolean {
    return this.#probe_ms !== undefined && now_ms < this.#probe_ms + this.#limits.open_max_ms;
  }

  get #failsOften(): boolean {
    const { window, failure_percent } = this.#limits;
    const failures = this.#outcomes.filter((failed) => failed).length;
    return this.#outcomes.length >= window && failures * 100 >= failure_percent * window;
  }

  #note(failed: boolean): void {
    this.#outcomes.push(failed);
    if (this.#outcomes.length > this.#limits.window) this.#outcomes.shift();
  }

  #open(now_ms: number): true {
    const { open_ms, open_max_ms } = this.#limits;
    this.#open_until_ms = now_ms + Math.min(open_max_ms, open_ms * 2 ** this.#openings);
    this.#openings++;
    this.#inARow = 0;
    this.#probe_ms = undefined;
    return true;
  }
}
