import { LastFindings } from './last-findings.ts';
import type { Damage, RunId } from './store.ts';
import { DamagedRunError } from './store.ts';

/** Tells of a damaged run once, however often its clients read it. */
export class DamageReports {
  readonly #onError: (error: DamagedRunError) => void;
  readonly #found = new LastFindings<RunId>();

  constructor(onError: (error: DamagedRunError) => void) {
    this.#onError = onError;
  }

  /** `damage` was found by reading: it is told unless it was before. */
  found(run: RunId, damage: Damage): void {
    // The place alone: how much is missing and discarded behind it grows for as long as the run goes on.
    const place = `${damage.record} ${damage.seq}`;
    if (this.#found.isNew(run, place)) this.#onError(new DamagedRunError(run, damage));
  }

  /** The run goes on from there, so that this is told in any case. */
  rewound(run: RunId, damage: Damage): void {
    this.#onError(new DamagedRunError(run, damage));
  }
}
