import type { Logger } from 'pino';
import { sleep, type Time } from '../../lib/time.ts';

/** Polling interval: short while there is news, and doubled after each poll without. */
const POLL_MS_MIN = 20;
const POLL_MS_MAX = 200;
/** The response ends if the store can't be read for this long. */
const STORE_PATIENCE_MS = 30_000;

/** Polls the store for what other replicas write, as long as a client waits for it. */
export class StorePoll {
  readonly #context: { readonly time: Time; readonly log: Logger };
  readonly #signal: AbortSignal;
  /** Log fields that name what is being read. */
  readonly #subject: object;
  readonly #poll_ms_max: number;
  #poll_ms = POLL_MS_MIN;

  /** `signal`: aborts when the client stops waiting. */
  constructor(
    context: { readonly time: Time; readonly log: Logger },
    signal: AbortSignal,
    subject: object,
    poll_ms_max = POLL_MS_MAX,
  ) {
    this.#poll_ms_max = poll_ms_max;
    this.#context = context;
    this.#signal = signal;
    this.#subject = subject;
  }

  /** Returns to the shortest interval: after news, more may follow soon. */
  hurry(): void {
    this.#poll_ms = POLL_MS_MIN;
  }

  /** Resolves when the next poll is due, or when `signal` aborts. */
  async rest(): Promise<void> {
    await sleep(this.#context.time, this.#poll_ms, this.#signal);
    this.#poll_ms = Math.min(this.#poll_ms * 2, this.#poll_ms_max);
  }

  /** Retries `ask` while the store fails. Undefined if that takes too long, or the client disconnects meanwhile. */
  async patiently<Result>(ask: () => Promise<Result>): Promise<Result | undefined> {
    const { time, log } = this.#context;
    const until_ms = time.now() + STORE_PATIENCE_MS;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        log.warn({ ...this.#subject, err: error }, 'the followed run or task cannot be read');
        if (this.#signal.aborted || time.now() >= until_ms) return undefined;
      }
      await sleep(time, POLL_MS_MAX, this.#signal);
    }
  }
}
