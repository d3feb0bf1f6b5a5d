import type { ErrorCode } from '../../lib/errors.ts';
import type { TaskTerms } from './agreed-terms.ts';
import type { LedgerCall } from './call-ledger.ts';
import type { TaskEra } from './task-records.ts';
import type { OwnedTask, TaskState } from './task-states.ts';

/** Observes tasks beside their steps, which a `RunObserver` sees. None of these may throw or wait. */
export interface TaskObserver {
  /** Its owner has given it another status. */
  changed(task: OwnedTask, state: TaskState): void;
  /** A request that would have been a new step of it was refused with `code`. */
  refused(task: TaskEra, code: ErrorCode, terms: TaskTerms): void;
  /** A client that was about to run a tool got `unknown`: nothing is known of an earlier claim. */
  callUnknown(call: UnknownCall): void;
}

/** A call of which `claim` stands, for longer than its tool may take. */
export interface UnknownCall extends LedgerCall, TaskEra {
  readonly claim: string;
  readonly claimed_at_ms: number;
}
