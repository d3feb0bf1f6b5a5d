import { remember } from '../lib/bounded-map.ts';
import { type Damage, DamagedRunError, type RunId } from './store.ts';

/** Reports a damaged run once, however often its clients read it. */
export class DamageReports {
  readonly #onError: (error: DamagedRunError) => void;
  readonly #found = new LastFindings<RunId>();

  constructor(onError: (error: DamagedRunError) => void) {
    this.#onError = onError;
  }

  /** Reports `damage` that a read has found, unless it was reported before. */
  found(run: RunId, damage: Damage): void {
    // The place alone: what is missing and discarded behind it grows for as long as the run lasts.
    const place = `${damage.record} ${damage.seq}`;
    if (this.#found.isNew(run, place)) this.#onError(new DamagedRunError(run, damage));
  }

  /** Reports `damage` in any case: the run continues from there. */
  rewound(run: RunId, damage: Damage): void {
    this.#onError(new DamagedRunError(run, damage));
  }
}

/** Beyond that, the oldest finding is forgotten, and may be reported again. */
const SUBJECTS_MAX = 1000;

/** Remembers what was found wrong with each of a bounded number of subjects, so that it is reported once. */
export class LastFindings<Subject> {
  readonly #findings = new Map<Subject, string>();

  /** Whether this is not what was found last. It is remembered from now on. */
  isNew(subject: Subject, finding: string): boolean {
    if (this.#findings.get(subject) === finding) return false;
    remember(this.#findings, subject, finding, SUBJECTS_MAX);
    return true;
  }
}
