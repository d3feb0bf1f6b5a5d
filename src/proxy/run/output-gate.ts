import type { RunContext } from './context/run-context.ts';
import type { Delivery } from './delivery.ts';
import type { RunJournal } from './journal.ts';

/**
 * Sends what a delivery has collected, once that is ours to send: stored before it is shown where it must be, and after a
 * silence as long as a lease, of the provider or of this process, not before the store says that the run is still ours.
 */
export class OutputGate {
  readonly #delivery: Delivery;
  readonly #journal: Pick<RunJournal, 'stored' | 'confirmed'>;
  readonly #context: Pick<RunContext, 'configuration' | 'time'>;
  /** When something was last sent, or confirmed to be ours to send. */
  #flushed_ms: number;

  constructor(delivery: Delivery, journal: RunJournal, context: RunContext) {
    this.#delivery = delivery;
    this.#journal = journal;
    this.#context = context;
    this.#flushed_ms = context.time.now();
  }

  /** Sends what was collected; waits, if at all, for the store or for a slow client. */
  flush(now_ms: number): Promise<void> | undefined {
    // An event that shows nothing yet ends no silence: what it is shown with would go unasked.
    if (!this.#delivery.pending) return undefined;
    const silent_ms = now_ms - this.#flushed_ms;
    this.#flushed_ms = now_ms;
    return this.#leave(silent_ms)?.then(() => this.#delivery.flush()) ?? this.#delivery.flush();
  }

  /** Sends it together with the end of the response. */
  async end(): Promise<void> {
    await this.#leave(this.#context.time.now() - this.#flushed_ms);
    this.#delivery.end();
  }

  /** What must be waited for before anything is sent. */
  #leave(silent_ms: number): Promise<void> | undefined {
    const { durability, lease_ms } = this.#context.configuration.checkpoint;
    if (durability === 'write_ahead' || this.#delivery.needsStored) return this.#journal.stored();
    return silent_ms < lease_ms ? undefined : this.#journal.confirmed();
  }
}
