import type { PlacedFault } from './fault.ts';
import type { FaultReport } from './report.ts';

type Facts = Pick<FaultReport, 'request' | 'path' | 'fault'>;

/** The outcome of one request's fault, reported once. */
export class FaultOutcome {
  readonly #facts: Facts;
  readonly #report: (report: FaultReport) => void;
  #isSettled: boolean = false;

  constructor(facts: Facts, report: (report: FaultReport) => void) {
    this.#facts = facts;
    this.#report = report;
  }

  /** The outcome is known: the fault struck or was missed. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** `after`: how much of the answer the client received before the fault. */
  strike(after?: FaultReport['after']): void {
    this.#settle(after && { after });
  }

  /** `missed`: why the fault didn't strike. Ignored if it did. */
  miss(missed: string): void {
    this.#settle({ missed });
  }

  #settle(told: Pick<FaultReport, 'after' | 'missed'> = {}): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#report({ ...this.#facts, ...told });
  }
}

/** A fault that is still to strike in an answer. */
export interface PendingFault {
  readonly fault: PlacedFault;
  readonly outcome: FaultOutcome;
}
