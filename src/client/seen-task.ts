import type {
  RunStatus,
  ShownTask,
  StepDocument,
  TaskDocument,
  TaskEvent,
  TaskRecovery,
  TaskUsage,
} from './task-documents.ts';

/** A task's progress. */
export interface TaskProgress {
  readonly status: TaskDocument['status'];
  /** Why it has this status, if someone gave a reason. */
  readonly reason: string | null;
  /** How many steps have a complete answer. */
  readonly steps_done: number;
  /** How many steps have begun. */
  readonly steps: number;
  /** How many steps it takes, if the task states that. */
  readonly steps_total: number | null;
  readonly usage: TaskUsage;
  /** The step that changed last: what's happening now. */
  readonly step: TaskStep | null;
}

export interface TaskStep {
  /** From 1 on. */
  readonly number: number;
  /** `Holdfast-Task-Step` of its request. */
  readonly name: string | null;
  /** The id of the run that answers it; `null` while there's none. */
  readonly status: RunStatus | null;
  /** How Holdfast continued its answer after each interruption, in order. */
  readonly recoveries: readonly TaskRecovery[];
}

type Shown = Omit<TaskProgress, 'steps_done' | 'step'>;

const NOTHING_SHOWN: Shown = {
  status: 'pending',
  reason: null,
  steps: 0,
  steps_total: null,
  usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
};

/** A task's state, as its events show it. */
export class SeenTask {
  #shown = NOTHING_SHOWN;
  #isPurged = false;
  #created_at: number | null | undefined;
  #step: TaskStep | null = null;
  readonly #done = new Set<number>();
  /** The events begin with the existing steps: up to this number. */
  #known = 0;
  /** The highest number so far. */
  #last = 0;

  /** The task was deleted. */
  get isPurged(): boolean {
    return this.#isPurged;
  }

  /** The task accepts no new steps. One may still be under way. */
  get isEnded(): boolean {
    const { status } = this.progress;
    return status === 'completed' || status === 'cancelled';
  }

  /** Whether events of the steps that existed at the beginning are still missing. */
  get isCatchingUp(): boolean {
    return !this.#isPurged && this.#last < this.#known;
  }

  get progress(): TaskProgress {
    const { status, reason, steps, steps_total, usage } = this.#shown;
    return {
      status: this.#isPurged ? 'cancelled' : status,
      reason,
      steps_done: this.#done.size,
      steps,
      steps_total,
      usage,
      step: this.#step,
    };
  }

  /** Returns whether this may have changed the progress. */
  add(event: TaskEvent): boolean {
    if (event.object === 'holdfast.step') this.#addStep(event);
    else if (event.object === 'holdfast.task') {
      if (event.purged || this.#isAnother(event)) this.#isPurged = true;
      else this.#addTask(event);
    } else return false;
    return true;
  }

  /** The client has read the task again. */
  show(document: TaskDocument): void {
    this.#shown = document;
  }

  #addTask(task: ShownTask): void {
    this.#known ||= task.last_step?.number ?? 0;
    this.#created_at = task.created_at;
    this.#shown = task;
  }

  #addStep({ number, run, recoveries }: StepDocument): void {
    this.#last = Math.max(this.#last, number);
    if (run?.status === 'complete') this.#done.add(number);
    this.#step = { number, name: run?.step_name ?? null, status: run?.status ?? null, recoveries };
  }

  /** While no replica was reachable, the task was deleted and another one with its name began. */
  #isAnother({ created_at }: ShownTask): boolean {
    return this.#created_at !== undefined && this.#created_at !== created_at;
  }
}
