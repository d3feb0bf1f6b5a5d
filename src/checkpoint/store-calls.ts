import type { CheckpointScheduler } from './checkpoint-scheduler.ts';

/** A store that has not answered for this long no longer holds back what is delivered. */
const ANSWER_MAX_MS = 1000;
const RETRY_MAX_MS = 2000;

/** One journal's calls of its store, one at a time: how the one under way does, and when the next may be made. */
export class StoreCalls {
  readonly #scheduler: CheckpointScheduler;
  #isUnderWay: boolean = false;
  #turn_ms = 0;
  #watched_ms = 0;
  /** The one under way has not been answered in time. */
  #isStalled: boolean = false;
  #failures = 0;
  #retry_at_ms = 0;

  /** They are watched in the interval of `scheduler`, which is also the wait after a first failure. */
  constructor(scheduler: CheckpointScheduler) {
    this.#scheduler = scheduler;
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** The store fails, or does not answer. */
  get isFailing(): boolean {
    return this.#isStalled || this.#failures > 0;
  }

  /** When it was last the journal's turn. */
  get turn_ms(): number {
    return this.#turn_ms;
  }

  /** Whether the store has been left alone for long enough after it failed. */
  mayBegin(now_ms: number): boolean {
    return now_ms >= this.#retry_at_ms;
  }

  /** It is the journal's turn to make one, if it has anything to store. */
  takeTurn(now_ms: number): void {
    this.#turn_ms = now_ms;
  }

  /** Makes one call. Resolves with the time it took. */
  async make(call: () => Promise<unknown>): Promise<number> {
    const { time } = this.#scheduler;
    const started_ms = time.now();
    this.#isUnderWay = true;
    try {
      await call();
    } finally {
      this.#isUnderWay = false;
      this.#isStalled = false;
    }
    this.#failures = 0;
    return time.now() - started_ms;
  }

  /** The store, which has failed, may do better later: the wait doubles with every further failure. */
  backOff(): void {
    const { time, interval_ms } = this.#scheduler;
    this.#retry_at_ms = time.now() + Math.min(interval_ms * 2 ** this.#failures++, RETRY_MAX_MS);
  }

  /** To be called every interval. True if the answer to the one under way is overdue. */
  watch(now_ms: number): boolean {
    // This process was stopped: answers of the store may be waiting, and one of them may be that the lease is lost.
    const slept_ms = now_ms - this.#watched_ms - this.#scheduler.interval_ms;
    if (this.#isUnderWay && slept_ms >= ANSWER_MAX_MS) this.#turn_ms = now_ms;
    this.#watched_ms = now_ms;
    const isOverdue = this.#isUnderWay && now_ms - this.#turn_ms >= ANSWER_MAX_MS;
    if (isOverdue) this.#isStalled = true;
    return isOverdue;
  }
}
