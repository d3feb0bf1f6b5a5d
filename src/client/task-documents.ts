/** Holdfast's document about a task. It has more fields than these: see docs/tasks.md. */
export interface TaskDocument {
  readonly id: string;
  /** `pending`: it has no steps yet; `failed`: it's running, but its last step got no answer. */
  readonly status: 'pending' | 'running' | 'failed' | 'paused' | 'completed' | 'cancelled';
  readonly reason: string | null;
  readonly steps: number;
  readonly steps_total: number | null;
  readonly usage: TaskUsage;
  readonly [field: string]: unknown;
}

/** The sum over the steps that Holdfast still has. An estimate for incomplete answers. */
export interface TaskUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** A task's description and limits. */
export interface TaskTerms {
  /** For people; at most 1000 characters. */
  readonly description?: string | null;
  /** How many steps it takes, as far as you know. */
  readonly steps_total?: number | null;
  /** When it stops accepting new steps, in seconds since the Unix epoch. */
  readonly deadline_at?: number | null;
  /** It accepts no new steps once its answers, with their prompts, have used this many tokens. */
  readonly budget_tokens?: number | null;
}

/** A step, with its answer. */
export interface StepDocument {
  readonly number: number;
  readonly run: { readonly status: RunStatus; readonly step_name: string | null } | null;
  readonly recoveries: readonly TaskRecovery[];
}

/** Anything but `running` and `complete` means that it has no complete answer. */
export type RunStatus =
  | 'running'
  | 'complete'
  | 'failed'
  | 'cancelled'
  | 'recovered_from_partial'
  | 'timeout_partial';

/** How Holdfast continued an answer; see docs/recovery.md. */
export interface TaskRecovery {
  readonly attempt: number | null;
  readonly upstream: string | null;
  readonly mode: string;
  readonly plan: string | null;
  readonly cause: string | null;
}

/** The contents of a task's events. */
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
