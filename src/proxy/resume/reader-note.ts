import type { Owner, RunId } from '../../checkpoint/store.ts';
import type { RunContext } from '../run/context/run-context.ts';

/** How long a reader counts as present; it renews its note after half this time. */
const READER_NOTE_MS = 30_000;

/** Notes that a run is being read, so that a replica delivering it for a disconnected client continues. */
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

  /** Rate-limited; call it often. */
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
