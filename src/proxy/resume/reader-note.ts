import type { Owner, RunId } from '../../checkpoint/store.ts';
import type { RunContext } from '../run/context/run-context.ts';

/** For how long a reader is taken to be there; it says so again in half the time. */
const READER_NOTE_MS = 30_000;

/** Says that a run is read: a replica that delivers it for a client that has left continues while it is. */
export class ReaderNote {
  readonly #of: { readonly run: RunId; readonly owner: Owner };
  readonly #context: Pick<RunContext, 'store' | 'time' | 'log'>;
  #noted_ms = Number.NEGATIVE_INFINITY;

  constructor(
    of: { readonly run: RunId; readonly owner: Owner },
    context: Pick<RunContext, 'store' | 'time' | 'log'>,
  ) {
    this.#of = of;
    this.#context = context;
  }

  /** To be called again and again. */
  renew(): void {
    const { store, time, log } = this.#context;
    const { run, owner } = this.#of;
    const now_ms = time.now();
    if (now_ms - this.#noted_ms < READER_NOTE_MS / 2) return;
    this.#noted_ms = now_ms;
    store.notes
      .put(owner, { kind: 'reader', name: run }, '', READER_NOTE_MS)
      .catch((error) => log.warn({ run, err: error }, 'could not store the note of a reader'));
  }
}
