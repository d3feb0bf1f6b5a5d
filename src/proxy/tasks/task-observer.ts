import type { ErrorCode } from '../../lib/errors.ts';
import type { TaskTerms } from './agreed-terms.ts';
import type { LedgerCall } from './call-ledger.ts';
import type { TaskEra } from './task-records.ts';
import type { OwnedTask, TaskState } from './task-states.ts';

/** Observes tasks, except for the steps that a `RunObserver` sees. Methods must neither throw nor block. */
export interface TaskObserver {
  /** The owner changed the task's status. */
  changed(task: OwnedTask, state: TaskState): void;
  /** A request for a new step was refused with `code`. */
  refused(task: TaskEra, code: ErrorCode, terms: TaskTerms): void;
  /** A client that wanted to run a tool got `unknown`, because an earlier claim has no outcome. */
  callUnknown(call: UnknownCall): void;
}

/** A call whose `claim` has lasted longer than its tool may take. */
export interface UnknownCall extends LedgerCall, TaskEra {
  readonly claim: string;
  readonly claimed_at_ms: number;
}
