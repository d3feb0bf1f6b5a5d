import type { Logger } from 'pino';
import { sleep, type Time } from '../../lib/time.ts';

/** How often the store is asked for more: fast while there is some, and ever less often while there is none. */
const POLL_MS_MIN = 20;
const POLL_MS_MAX = 200;
/** A store that cannot be read for so long ends the response: what it has to say is unknown. */
const STORE_PATIENCE_MS = 30_000;

/** Asks the store again and again for what other replicas write, for as long as a client waits for it. */
export class StorePoll {
  readonly #context: { readonly time: Time; readonly log: Logger };
  readonly #signal: AbortSignal;
  /** What is read, for the log. */
  readonly #subject: object;
  readonly #poll_ms_max: number;
  #poll_ms = POLL_MS_MIN;

  /** `signal`: aborts when the client waits no longer. */
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

  /** There was something new: more may follow soon. */
  hurry(): void {
    this.#poll_ms = POLL_MS_MIN;
  }

  /** Resolves when the store is to be asked again, or `signal` aborts. */
  async rest(): Promise<void> {
    await sleep(this.#context.time, this.#poll_ms, this.#signal);
    this.#poll_ms = Math.min(this.#poll_ms * 2, this.#poll_ms_max);
  }

  /** Asks a failing store again and again; undefined when it took too long, or the client has gone meanwhile. */
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
