import { remember } from '../lib/bounded-map.ts';
import { type Damage, DamagedRunError, type RunId } from './store.ts';

/** Reports a damaged run once, however often it is read. */
export class DamageReports {
  readonly #onError: (error: DamagedRunError) => void;
  readonly #found = new LastFindings<RunId>();

  constructor(onError: (error: DamagedRunError) => void) {
    this.#onError = onError;
  }

  /** Reports `damage` found by a read, unless it was reported before. */
  found(run: RunId, damage: Damage): void {
    // Compares only the place, because the missing and discarded events behind it keep growing while the run lasts.
    const place = `${damage.record} ${damage.seq}`;
    if (this.#found.isNew(run, place)) this.#onError(new DamagedRunError(run, damage));
  }

  /** Always reports `damage`, because the run continues from before it. */
  rewound(run: RunId, damage: Damage): void {
    this.#onError(new DamagedRunError(run, damage));
  }
}

/** Above this number, the oldest finding is forgotten and may be reported again. */
const SUBJECTS_MAX = 1000;

/** Remembers the last finding for each of a bounded number of subjects, so that it is reported once. */
export class LastFindings<Subject> {
  readonly #findings = new Map<Subject, string>();

  /** Whether this differs from the subject's last finding. Remembers it either way. */
  isNew(subject: Subject, finding: string): boolean {
    if (this.#findings.get(subject) === finding) return false;
    remember(this.#findings, subject, finding, SUBJECTS_MAX);
    return true;
  }
}
