import type { Damage, RunId } from './store.ts';
import { DamagedRunError } from './store.ts';

/** Damaged runs that are remembered. Beyond that, the one remembered longest may be reported again. */
const RUNS_MAX = 1000;

/** Tells of a damaged run once, however often its clients read it. */
export class DamageReports {
  readonly #onError: (error: DamagedRunError) => void;
  readonly #known = new Map<RunId, string>();

  constructor(onError: (error: DamagedRunError) => void) {
    this.#onError = onError;
  }

  /** `damage` was found by reading: it is told unless it was before. */
  found(run: RunId, damage: Damage): void {
    const error = new DamagedRunError(run, damage);
    if (this.#known.get(run) === error.message) return;
    this.#known.delete(run);
    const [oldest] = this.#known.keys();
    if (this.#known.size >= RUNS_MAX && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(run, error.message);
    this.#onError(error);
  }

  /** The run goes on from there, so that this is told in any case. */
  rewound(run: RunId, damage: Damage): void {
    this.#onError(new DamagedRunError(run, damage));
  }
}
