import type { PlacedFault } from './fault.ts';
import type { FaultReport } from './report.ts';

type Facts = Pick<FaultReport, 'request' | 'path' | 'fault'>;

/** What came of the fault of one request, which is reported once. */
export class FaultOutcome {
  readonly #facts: Facts;
  readonly #report: (report: FaultReport) => void;
  #isSettled: boolean = false;

  constructor(facts: Facts, report: (report: FaultReport) => void) {
    this.#facts = facts;
    this.#report = report;
  }

  /** The fault has struck, or will not. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** `after`: what the client was sent of the answer before. */
  strike(after?: FaultReport['after']): void {
    this.#settle(after && { after });
  }

  /** `missed`: why the fault has not struck. Of no consequence where it has. */
  miss(missed: string): void {
    this.#settle({ missed });
  }

  #settle(told: Pick<FaultReport, 'after' | 'missed'> = {}): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#report({ ...this.#facts, ...told });
  }
}

/** A fault that is to strike in an answer. */
export interface PendingFault {
  readonly fault: PlacedFault;
  readonly outcome: FaultOutcome;
}
