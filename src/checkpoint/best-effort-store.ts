import type { Logger } from 'pino';
import { inTime, type Time } from '../lib/time.ts';

/** The longest that a request waits for the store: a failing store delays no request for longer. */
export const STORE_WAIT_MAX_MS = 250;
/** The same of a request that names a task or a key: an answer that is paid for twice is worse than one that comes later. */
export const NAMED_WAIT_MAX_MS = 2000;
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
  readonly #wait_max_ms: number;
  #resting_until_ms = Number.NEGATIVE_INFINITY;

  /** `without`: what does not happen while the store is left alone, for the log. `wait_max_ms`: for a store that has not failed of late. */
  constructor(context: Surroundings, without: string, wait_max_ms = STORE_WAIT_MAX_MS) {
    this.#context = context;
    this.#without = without;
    this.#wait_max_ms = wait_max_ms;
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
    const wait_max_ms = this.isResting ? STORE_WAIT_MAX_MS : this.#wait_max_ms;
    await inTime(settled, this.#context.time, wait_max_ms);
    if (!isOver) this.rest(new Error(`the store has not answered for ${wait_max_ms} ms`));
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
