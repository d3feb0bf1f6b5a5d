import type { BreakerLimits } from '../../config/configuration.ts';
import { type BreakerState, CircuitBreaker } from '../../plans/circuit-breaker.ts';

/** How a target has been doing lately, as all runs of this process know it. Times in milliseconds, monotonic. */
export class TargetHealth {
  readonly #breaker: CircuitBreaker;
  #ready_at_ms = Number.NEGATIVE_INFINITY;
  #thinks: boolean = false;

  constructor(limits: BreakerLimits) {
    this.#breaker = new CircuitBreaker(limits);
  }

  /** It has asked not to be asked before. */
  get ready_at_ms(): number {
    return this.#ready_at_ms;
  }

  /** Its model was seen to think: silence means less of it. */
  get thinks(): boolean {
    return this.#thinks;
  }

  noteThinking(): void {
    this.#thinks = true;
  }

  leaveAlone(until_ms: number): void {
    this.#ready_at_ms = Math.max(this.#ready_at_ms, until_ms);
  }

  state(now_ms: number): BreakerState {
    return this.#breaker.state(now_ms);
  }

  /** Others should be asked first. */
  isDoubted(now_ms: number): boolean {
    return !this.#breaker.admits(now_ms);
  }

  /** An attempt begins. The caller must report how it ends. */
  ask(now_ms: number): HealthProbe {
    return new HealthProbe(this.#breaker, now_ms);
  }
}

/** One attempt, as far as it shows the health of its target. */
export class HealthProbe {
  readonly #breaker: CircuitBreaker;
  readonly #began_ms: number;
  readonly #probe: boolean;
  #answered = false;

  constructor(breaker: CircuitBreaker, now_ms: number) {
    this.#breaker = breaker;
    this.#began_ms = now_ms;
    this.#probe = breaker.begin(now_ms);
  }

  /** True if the target counts as up again since. */
  answered(now_ms: number): boolean {
    if (this.#answered) return false;
    this.#answered = true;
    return this.#breaker.succeeded(now_ms);
  }

  /** True if the target counts as down since. */
  failed(now_ms: number): boolean {
    return this.#breaker.failed({
      began_ms: this.#began_ms,
      now_ms,
      answered: this.#answered,
      probe: this.#probe,
    });
  }

  /** Nothing more is to be learnt from it. */
  end(): void {
    if (this.#probe) this.#breaker.release(this.#began_ms);
  }
}
