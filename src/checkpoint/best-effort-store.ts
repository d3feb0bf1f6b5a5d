import type { Logger } from 'pino';
import { inTime, type Time } from '../lib/time.ts';

/** The longest that a request waits for the store: a failing store delays no request for longer. */
export const STORE_WAIT_MAX_MS = 250;
/** A store that failed to answer is not asked for this long. */
const REST_MS = 5000;

interface Surroundings {
  readonly time: Time;
  readonly log: Pick<Logger, 'warn'>;
}

/** Asks the store what requests can do without, so that one that fails or is slow delays none for long, and few of them. */
export class BestEffortStore {
  readonly #context: Surroundings;
  readonly #without: string;
  #resting_until_ms = Number.NEGATIVE_INFINITY;

  /** `without`: what does not happen while the store is left alone, for the log. */
  constructor(context: Surroundings, without: string) {
    this.#context = context;
    this.#without = without;
  }

  get isResting(): boolean {
    return this.#context.time.now() < this.#resting_until_ms;
  }

  /** Undefined when the store fails or takes too long; a later result goes to `onLate`. Never rejects. */
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
    await inTime(settled, this.#context.time, STORE_WAIT_MAX_MS);
    if (!isOver) this.rest(new Error(`the store has not answered for ${STORE_WAIT_MAX_MS} ms`));
    isOver = true;
    return given;
  }

  /** The store has failed: it is left alone for a while. */
  rest(error: unknown): void {
    if (this.isResting) return;
    this.#resting_until_ms = this.#context.time.now() + REST_MS;
    this.#context.log.warn({ err: error }, `${this.#without}: the store does not answer`);
  }
}
