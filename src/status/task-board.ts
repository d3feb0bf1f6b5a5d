import { remember } from '../lib/bounded-map.ts';
import type { Time } from '../lib/time.ts';
import type { ObservedStep } from '../proxy/run/context/run-observer.ts';
import type { BoardRun } from './board-run.ts';
import { BoardTask, type TaskReference, taskId } from './board-task.ts';
import { shownText } from './shown-text.ts';
import { STATUS_VERSION, type TaskDetail, type TaskId, type TasksDocument } from './snapshot.ts';

export const TASKS_MAX = 100;
const NAME_CHARACTERS_MAX = 80;

/** The latest tasks that had a step on this replica. */
export class TaskBoard {
  readonly #time: Time;
  readonly #content: boolean;
  /** The task with the latest step comes last. */
  readonly #tasks = new Map<TaskId, BoardTask>();

  constructor({ time, content }: { readonly time: Time; readonly content: boolean }) {
    this.#time = time;
    this.#content = content;
  }

  /** The task of a step that begins or is replayed. */
  taskOf(step: ObservedStep): BoardTask {
    const { owner, parent } = step;
    const named = this.#named(step);
    const task = this.#tasks.get(named.id) ?? new BoardTask(named, this.#time.wall());
    if (parent !== undefined) task.noteParent(this.#named({ owner, task: parent }));
    remember(this.#tasks, task.id, task, TASKS_MAX);
    return task;
  }

  #named(named: Pick<ObservedStep, 'owner' | 'task'>): TaskReference {
    const id = taskId(named);
    return this.#content ? { id, name: shownText(named.task, NAME_CHARACTERS_MAX) } : { id };
  }

  /** The remembered runs of all tasks. */
  get runs(): Iterable<BoardRun> {
    return [...this.#tasks.values()].flatMap(({ runs }) => runs);
  }

  read(): TasksDocument {
    const tasks = Array.from(this.#tasks.values(), (task) => task.summary()).reverse();
    return { version: STATUS_VERSION, now_ms: this.#time.wall(), tasks };
  }

  detail(id: string): TaskDetail | undefined {
    const task = this.#tasks.get(id as TaskId);
    return task && { version: STATUS_VERSION, now_ms: this.#time.wall(), ...task.detail() };
  }
}
