/** Beyond that, the one remembered longest is forgotten, and may be told again. */
const SUBJECTS_MAX = 1000;

/** Remembers what was found wrong with each of a bounded number of subjects, so that it is told once. */
export class LastFindings<Subject> {
  readonly #findings = new Map<Subject, string>();

  /** Whether this is not what was found last. It is remembered from now on. */
  isNew(subject: Subject, finding: string): boolean {
    if (this.#findings.get(subject) === finding) return false;
    this.#findings.delete(subject);
    const [oldest] = this.#findings.keys();
    if (this.#findings.size >= SUBJECTS_MAX && oldest !== undefined) this.#findings.delete(oldest);
    this.#findings.set(subject, finding);
    return true;
  }
}
