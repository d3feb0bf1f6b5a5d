import type { Store } from '../checkpoint/store.ts';
import { inTime, type Time } from '../lib/time.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { shownText } from './shown-text.ts';
import type { StoreState } from './snapshot.ts';

/** However many look at it, the store is asked no more often. */
const ASK_EVERY_MS = 5000;
const ANSWER_MAX_MS = 1000;
const REASON_CHARACTERS_MAX = 200;

export interface StoreProbeParts {
  readonly store: Store;
  readonly metrics: Pick<Metrics, 'checkpointErrors'>;
  readonly time: Time;
}

/** How the store does, found out when somebody wants to know. */
export class StoreProbe {
  readonly #parts: StoreProbeParts;
  #asked_ms = Number.NEGATIVE_INFINITY;
  #answer: Pick<StoreState, 'state' | 'reason'> = { state: 'unknown' };
  #asking: Promise<void> | undefined;

  constructor(parts: StoreProbeParts) {
    this.#parts = parts;
  }

  /** Resolves within a second or so, whatever the store does. */
  async read(): Promise<StoreState> {
    const { store, metrics, time } = this.#parts;
    if (!this.#asking && time.now() - this.#asked_ms >= ASK_EVERY_MS) {
      this.#asked_ms = time.now();
      this.#asking = this.#ask().finally(() => {
        this.#asking = undefined;
      });
    }
    await this.#asking;
    const { values } = await metrics.checkpointErrors.get();
    return {
      name: store.name,
      ...this.#answer,
      failed_appends: values.reduce((sum, { value }) => sum + value, 0),
    };
  }

  async #ask(): Promise<void> {
    const { store, time } = this.#parts;
    try {
      const answer = await inTime(
        store.check().then(() => true),
        time,
        ANSWER_MAX_MS,
      );
      this.#answer = answer ? { state: 'ok' } : { state: 'failing', reason: 'it does not answer' };
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unavailable';
      this.#answer = { state: 'failing', reason: shownText(reason, REASON_CHARACTERS_MAX) };
    }
  }
}
