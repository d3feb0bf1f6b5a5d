import type { Settings } from './options.ts';

type Limits = Pick<
  Settings,
  'endpoints' | 'maxRetries' | 'giveUpMs' | 'backoffMs' | 'backoffMaxMs' | 'retryAfterMaxMs'
>;

/** Several clients that lost the same replica shouldn't reach the next one at the same time. */
const RETRY_AFTER_SPREAD = 0.1;
/** More doublings would exceed every limit, and zero times infinity isn't a number. */
const DOUBLINGS_MAX = 31;

/** How the last try failed. */
export interface Failure {
  /** No replica answered: the connection was refused or broke, or something in front of the replicas turned it away. */
  readonly isClosedDoor?: boolean;
  /** How long the answer asks to wait. */
  readonly retry_after_ms?: number | undefined;
}

/** How often, how soon and how long the client tries to resume a run. */
export class RetryBudget {
  readonly #limits: Limits;
  #retries = 0;
  /** Failed rounds in a row: an answer without a new event, or closed doors at all replicas. */
  #rounds = 0;
  /** In a row. */
  #closedDoors = 0;
  #heard_ms = performance.now();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** The time left until giving up, if nothing more arrives. */
  get remaining_ms(): number {
    return this.#heard_ms + this.#limits.giveUpMs - performance.now();
  }

  /** Something arrived, possibly a keep-alive. */
  heard(): void {
    this.#heard_ms = performance.now();
  }

  /** New events arrived. */
  progressed(): void {
    this.#retries = 0;
    this.#rounds = 0;
    this.#closedDoors = 0;
  }

  /**
   * How long to wait before the next try; undefined when there's none left. `isClosedDoor`: the last try got no answer.
   * That costs no retry, because a connection is refused within a millisecond: such tries end after `giveUpMs`. Only
   * after a round of all replicas does the wait grow, because any of them may be back.
   */
  next({ isClosedDoor = false, retry_after_ms = 0 }: Failure = {}): number | undefined {
    const { endpoints, maxRetries, backoffMs, backoffMaxMs, retryAfterMaxMs } = this.#limits;
    if (maxRetries === 0 || (!isClosedDoor && this.#retries >= maxRetries)) return undefined;
    this.#closedDoors = isClosedDoor ? this.#closedDoors + 1 : 0;
    const isRoundOver = this.#closedDoors % Math.max(endpoints.length, 1) === 0;
    const doublings = isRoundOver ? Math.min(this.#rounds, DOUBLINGS_MAX) : 0;
    const backoff = Math.min(backoffMs * 2 ** doublings, backoffMaxMs) * (0.5 + 0.5 * Math.random());
    const asked = Math.min(retry_after_ms, retryAfterMaxMs) * (1 + RETRY_AFTER_SPREAD * Math.random());
    if (!isClosedDoor) this.#retries += 1;
    if (isRoundOver) this.#rounds += 1;
    const wait_ms = Math.max(backoff, asked);
    return wait_ms < this.remaining_ms ? wait_ms : undefined;
  }
}

/** Rejects at once with the signal's reason if it aborts. */
export function sleep(delay_ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const wake = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', wake);
      resolve();
    }, delay_ms);
    if (signal?.aborted) wake();
    else signal?.addEventListener('abort', wake, { once: true });
  });
}
