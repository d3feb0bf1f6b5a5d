import type { JournalEvent } from '../checkpoint/journal.ts';
import { createJournalWriter, type JournalWriter } from '../checkpoint/journal-writer.ts';
import type { FinalStatus } from '../checkpoint/store.ts';
import type { Run, RunContext } from './run.ts';

/** Longer than any healthy replica is silent; a run's lease is renewed by its appends. */
const LEASE_TTL_MS = 3_000;

/**
 * The journal of a run from the relay's side: takes events from the first moment on, although the store may still
 * be busy handing out the lease, and goes on without a store that does not.
 */
export class RunJournal {
  readonly #context: RunContext;
  readonly #ready: Promise<void>;
  #writer: JournalWriter | undefined;
  #waiting: JournalEvent[] | undefined = [];

  /** `onStale`: another replica took the run over. */
  constructor(run: Run, context: RunContext, onStale: () => void) {
    this.#context = context;
    this.#ready = this.#acquire(run, onStale);
  }

  record(event: JournalEvent): void {
    if (this.#writer) this.#writer.record(event);
    else this.#waiting?.push(event);
  }

  /** Resolves once everything recorded is stored, or the store has failed at it. */
  async stored(): Promise<void> {
    await this.#ready;
    await this.#writer?.flush();
  }

  async close(status: FinalStatus): Promise<void> {
    await this.#ready;
    await this.#writer?.close(status);
  }

  async #acquire(run: Run, onStale: () => void): Promise<void> {
    const { store, scheduler, metrics, log, time } = this.#context;
    try {
      const lease = await store.acquire(run.id, run.owner, LEASE_TTL_MS);
      this.#writer = createJournalWriter({
        store,
        lease,
        scheduler,
        start: { wire: 'chat_completions', created_at_ms: time.wall(), model: run.request.model },
        onAppend: (elapsed_ms) => metrics.checkpointAppend.observe({ store: store.name }, elapsed_ms / 1000),
        onError: (error) => {
          metrics.checkpointErrors.inc({ store: store.name });
          log.warn({ run: run.id, err: error }, 'checkpoint failed; the run goes on without');
        },
        onStale,
      });
      for (const event of this.#waiting ?? []) this.#writer.record(event);
    } catch (error) {
      metrics.checkpointErrors.inc({ store: store.name });
      log.warn({ run: run.id, err: error }, 'no checkpoints for this run: the store gave no lease');
    }
    this.#waiting = undefined;
  }
}
