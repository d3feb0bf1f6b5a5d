import { hash } from 'node:crypto';
import { remember } from '../lib/bounded-map.ts';
import type { Outcome } from '../plans/outcome.ts';
import type { ObservedStep } from '../proxy/run/context/run-observer.ts';
import type { BoardRun } from './board-run.ts';
import type { TaskDetail, TaskId, TaskState, TaskStep, TaskSummary } from './snapshot.ts';
import { StepNumbers } from './step-numbers.ts';

/** Number of latest steps kept per task, with their runs. */
const STEPS_MAX = 50;
/** A run that leaves and returns repeatedly shows its latest stays. */
const STAYS_MAX = 4;
const ID_CHARACTERS = 16;

const FAILURES: readonly (Outcome | undefined)[] = ['failed', 'rejected'] satisfies Outcome[];

/** Hashed with the owner, which is secret, so that the id can't be tested against guessed names. */
export const taskId = ({ owner, task }: Pick<ObservedStep, 'owner' | 'task'>): TaskId =>
  `task_${hash('sha256', `${owner}\n${task}`, 'base64url').slice(0, ID_CHARACTERS)}`;

export interface TaskReference {
  readonly id: TaskId;
  /** Present only if it may be shown. */
  readonly name?: string;
}

interface BoardStep extends Omit<TaskStep, 'number' | 'stays'> {
  readonly stays: readonly BoardRun[];
}

const NEW_STEP: BoardStep = { stays: [], replays: 0 };

/** A task on the status page, as seen by this replica. */
export class BoardTask {
  readonly id: TaskId;
  readonly #name: string | undefined;
  #parent: TaskReference | undefined;
  readonly #began_at_ms: number;
  /** By number. The step that last began or was replayed comes last. */
  readonly #steps = new Map<number, BoardStep>();
  #step_at_ms: number;
  /** Of all steps, those that are forgotten included. */
  readonly #numbers = new StepNumbers();
  #recoveries = 0;
  #tokens_paid = 0;
  #tokens_saved = 0;

  constructor({ id, name }: TaskReference, at_ms: number) {
    this.id = id;
    this.#name = name;
    this.#began_at_ms = at_ms;
    this.#step_at_ms = at_ms;
  }

  /** As in the API, the first step that names a parent determines it. */
  noteParent(parent: TaskReference): void {
    this.#parent ??= parent;
  }

  begin(number: number, run: BoardRun, at_ms: number): void {
    const known = this.#steps.get(number);
    // After a task was deleted, another run may be the step with that number.
    const isBack = known?.stays.some((stay) => stay.run === run.run) === true;
    const { stays, ...step } = isBack || known?.stays.length === 0 ? known : NEW_STEP;
    this.#keep(number, { ...step, stays: [...stays, run].slice(-STAYS_MAX) }, at_ms);
  }

  replayed(number: number, tokens: number, at_ms: number): void {
    const step = this.#steps.get(number) ?? NEW_STEP;
    this.#tokens_saved += tokens;
    this.#keep(number, { ...step, replays: step.replays + 1, replayed_at_ms: at_ms }, at_ms);
  }

  paid(tokens: number): void {
    this.#tokens_paid += tokens;
  }

  recovered(): void {
    this.#recoveries++;
  }

  /** The task's remembered runs. */
  get runs(): readonly BoardRun[] {
    return [...this.#steps.values()].flatMap(({ stays }) => stays);
  }

  summary(): TaskSummary {
    const state = this.#state;
    const isIdle = state === 'idle' || state === 'failed';
    return {
      task: this.id,
      ...(this.#name !== undefined && { name: this.#name }),
      ...(this.#parent && { parent: this.#parent.id }),
      ...(this.#parent?.name !== undefined && { parent_name: this.#parent.name }),
      state,
      began_at_ms: this.#began_at_ms,
      step_at_ms: this.#step_at_ms,
      ...(isIdle && {
        idle_since_ms: Math.max(this.#step_at_ms, ...this.runs.map((run) => run.ended_at_ms ?? 0)),
      }),
      steps: this.#numbers.size,
      step_numbers: this.#numbers.text,
      recoveries: this.#recoveries,
      tokens_paid: this.#tokens_paid,
      tokens_saved: this.#tokens_saved,
    };
  }

  detail(): Omit<TaskDetail, 'version' | 'now_ms'> {
    const steps = [...this.#steps].sort(([one], [other]) => one - other);
    const shown = steps.map(([number, { stays, ...step }]) => ({
      number,
      ...step,
      stays: stays.map((run) => run.stay()),
    }));
    return { ...this.summary(), shown };
  }

  get #state(): TaskState {
    const live = this.runs.filter(({ outcome }) => outcome === undefined);
    if (live.some(({ isRecovering }) => isRecovering)) return 'recovering';
    if (live.length > 0) return 'answering';
    const last = [...this.#steps.values()].at(-1);
    // A replayed step had ended with an answer after all.
    const isFailed = last?.replays === 0 && FAILURES.includes(last.stays.at(-1)?.outcome);
    return isFailed ? 'failed' : 'idle';
  }

  #keep(number: number, step: BoardStep, at_ms: number): void {
    this.#numbers.add(number);
    this.#step_at_ms = at_ms;
    remember(this.#steps, number, step, STEPS_MAX);
  }
}
