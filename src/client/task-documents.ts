/** What Holdfast says of a task. There is more than these: see docs/tasks.md. */
export interface TaskDocument {
  readonly id: string;
  /** `pending`: it has no steps yet; `failed`: it is running, and its last step had no answer. */
  readonly status: 'pending' | 'running' | 'failed' | 'paused' | 'completed' | 'cancelled';
  readonly reason: string | null;
  readonly steps: number;
  readonly steps_total: number | null;
  readonly usage: TaskUsage;
  readonly [field: string]: unknown;
}

/** The sum over its steps that are kept. Of an answer that is not whole, an estimate. */
export interface TaskUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** What a task is, and how far it may go. */
export interface TaskTerms {
  /** For people; at most 1000 characters. */
  readonly description?: string | null;
  /** How many steps it takes, as far as you know. */
  readonly steps_total?: number | null;
  /** Until when it has new steps, in seconds since the Unix epoch. */
  readonly deadline_at?: number | null;
  /** It has no new steps once its answers, with their prompts, have taken so many. */
  readonly budget_tokens?: number | null;
}

/** A step, with what was answered to it. */
export interface StepDocument {
  readonly number: number;
  readonly run: { readonly status: RunStatus; readonly step_name: string | null } | null;
  readonly recoveries: readonly TaskRecovery[];
}

/** Anything but `running` and `complete`: it has no whole answer. */
export type RunStatus =
  | 'running'
  | 'complete'
  | 'failed'
  | 'cancelled'
  | 'recovered_from_partial'
  | 'timeout_partial';

/** How an answer was continued; see docs/recovery.md. */
export interface TaskRecovery {
  readonly attempt: number | null;
  readonly upstream: string | null;
  readonly mode: string;
  readonly plan: string | null;
  readonly cause: string | null;
}

/** What the events of a task say. */
export type TaskEvent = ShownTask | PurgedTask | ShownStep | ShownCall;

export interface ShownTask extends TaskDocument {
  readonly object: 'holdfast.task';
  readonly created_at: number | null;
  readonly last_step: { readonly number: number } | null;
  readonly purged?: undefined;
}

interface PurgedTask {
  readonly object: 'holdfast.task';
  readonly purged: true;
}

interface ShownStep extends StepDocument {
  readonly object: 'holdfast.step';
}

interface ShownCall {
  readonly object: 'holdfast.call';
}
