import type {
  RunStatus,
  ShownTask,
  StepDocument,
  TaskDocument,
  TaskEvent,
  TaskRecovery,
  TaskUsage,
} from './task-documents.ts';

/** How far a task has come. */
export interface TaskProgress {
  readonly status: TaskDocument['status'];
  /** Why it has this status, where that was said. */
  readonly reason: string | null;
  /** How many steps have a whole answer. */
  readonly steps_done: number;
  /** How many steps have begun. */
  readonly steps: number;
  /** How many it takes, as far as that was said. */
  readonly steps_total: number | null;
  readonly usage: TaskUsage;
  /** The one that has changed last: what is happening now. */
  readonly step: TaskStep | null;
}

export interface TaskStep {
  /** From 1 on. */
  readonly number: number;
  /** `Holdfast-Task-Step` of its request. */
  readonly name: string | null;
  /** Of the run that answers it; `null` while there is none. */
  readonly status: RunStatus | null;
  /** How its answer was continued after interruptions, in their order. */
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

/** What is known of a task by its events. */
export class SeenTask {
  #shown = NOTHING_SHOWN;
  #isPurged = false;
  #created_at: number | null | undefined;
  #step: TaskStep | null = null;
  readonly #done = new Set<number>();
  /** The events begin with the steps that there are: up to this number. */
  #known = 0;
  /** The highest number that has come. */
  #last = 0;

  /** The task was deleted. */
  get isPurged(): boolean {
    return this.#isPurged;
  }

  /** It has no new steps any more. One may still be under way. */
  get isEnded(): boolean {
    const { status } = this.progress;
    return status === 'completed' || status === 'cancelled';
  }

  /** Events of steps that there were at the beginning are still to come. */
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

  /** Returns whether the progress may be another one by that. */
  add(event: TaskEvent): boolean {
    if (event.object === 'holdfast.step') this.#addStep(event);
    else if (event.object === 'holdfast.task') {
      if (event.purged || this.#isAnother(event)) this.#isPurged = true;
      else this.#addTask(event);
    } else return false;
    return true;
  }

  /** It was read once more. */
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

  /** While no replica was at hand, the task was deleted, and another one of its name begun. */
  #isAnother({ created_at }: ShownTask): boolean {
    return this.#created_at !== undefined && this.#created_at !== created_at;
  }
}
