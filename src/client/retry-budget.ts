import type { Settings } from './options.ts';

type Limits = Pick<
  Settings,
  'max_retries' | 'give_up_ms' | 'backoff_ms' | 'backoff_max_ms' | 'retry_after_max_ms'
>;

/** Several clients that lost the same replica should not come to the next one in step. */
const RETRY_AFTER_SPREAD = 0.1;

/** How often, how soon and how long a run is tried to be resumed. */
export class RetryBudget {
  readonly #limits: Limits;
  #retries = 0;
  #heard_ms = performance.now();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** What is left until giving up, if nothing more is heard. */
  get remaining_ms(): number {
    return this.#heard_ms + this.#limits.give_up_ms - performance.now();
  }

  /** Something came, be it a keep-alive. */
  heard(): void {
    this.#heard_ms = performance.now();
  }

  /** New events came. */
  progressed(): void {
    this.#retries = 0;
  }

  /** Takes one retry: how long to wait before it, undefined when there is none left. */
  next(retry_after_ms = 0): number | undefined {
    if (this.#retries >= this.#limits.max_retries) return undefined;
    const { backoff_ms, backoff_max_ms, retry_after_max_ms } = this.#limits;
    const backoff = Math.min(backoff_ms * 2 ** this.#retries, backoff_max_ms) * (0.5 + 0.5 * Math.random());
    const asked = Math.min(retry_after_ms, retry_after_max_ms) * (1 + RETRY_AFTER_SPREAD * Math.random());
    this.#retries += 1;
    const wait_ms = Math.max(backoff, asked);
    return wait_ms < this.remaining_ms ? wait_ms : undefined;
  }
}
