import type { Logger } from 'pino';
import { inTime, type Time } from '../lib/time.ts';

/** The longest time that a failing store may delay a request. */
export const STORE_WAIT_MAX_MS = 250;
/** The limit for a request that names a task or a key: a late answer is better than paying for it twice. */
export const NAMED_WAIT_MAX_MS = 2000;
/** How long a store that failed to answer is left alone. */
const REST_MS = 5000;

interface Surroundings {
  readonly time: Time;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Asks the store for things that requests can do without. A failing or slow store delays few requests, and none for
 * long.
 */
export class BestEffortStore {
  readonly #context: Surroundings;
  readonly #without: string;
  readonly #wait_max_ms: number;
  #resting_until_ms = Number.NEGATIVE_INFINITY;

  /**
   * `without`: what doesn't happen while the store rests, for the log. `wait_max_ms`: limit per answer while the store
   * isn't resting.
   */
  constructor(context: Surroundings, without: string, wait_max_ms = STORE_WAIT_MAX_MS) {
    this.#context = context;
    this.#without = without;
    this.#wait_max_ms = wait_max_ms;
  }

  get isResting(): boolean {
    return this.#context.time.now() < this.#resting_until_ms;
  }

  /** Resolves with undefined if the store fails or takes too long; a late result goes to `onLate`. Never rejects. */
  async answerOf<Answer>(
    answer: Promise<Answer>,
    onLate: (answer: Answer) => void = () => {},
  ): Promise<Answer | undefined> {
    let given: Answer | undefined;
    let isOver = false;
    const settled = answer.then(
      (value) => {
        if (isOver) onLate(value);
        else given = value;
        isOver = true;
      },
      (error: unknown) => {
        isOver = true;
        this.rest(error);
      },
    );
    const wait_max_ms = this.isResting ? STORE_WAIT_MAX_MS : this.#wait_max_ms;
    await inTime(settled, this.#context.time, wait_max_ms);
    if (!isOver) this.rest(new Error(`the store has not answered for ${wait_max_ms} ms`));
    isOver = true;
    return given;
  }

  /** Leaves the store alone for a while, because it failed. */
  rest(error: unknown): void {
    if (this.isResting) return;
    this.#resting_until_ms = this.#context.time.now() + REST_MS;
    this.#context.log.warn({ err: error }, `${this.#without}: the store does not answer`);
  }
}
