import { randomBytes } from 'node:crypto';
import { BestEffortStore, NAMED_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import type { Time } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';

/** A task and its owner. */
export interface OwnedTask {
  readonly owner: Owner;
  readonly task: string;
}

export type TaskEnd = 'completed' | 'cancelled';

/** A task's state as set by its owner, independent of its requests. */
export interface TaskState {
  readonly status: 'running' | 'paused' | TaskEnd;
  /** When the status was set; absent if it never was. */
  readonly since_ms?: number;
  /** The owner's reason. */
  readonly reason?: string;
  /** Set for an ended task with a shorter retention than usual. */
  readonly kept_until_ms?: number;
  /** Distinguishes the task from purged ones of the same name; empty before its first request. */
  readonly era: string;
}

/** Options for ending a task. */
export interface Ending {
  readonly reason?: string;
  /** Retention after the end in milliseconds, if shorter than usual. */
  readonly kept_ms?: number;
}

/** Whether the task accepts no further steps. */
export const isEnded = ({ status }: Pick<TaskState, 'status'>): boolean =>
  status === 'completed' || status === 'cancelled';

const NOTHING_SAID: TaskState = { status: 'running', era: '' };
const ERA_BYTES = 9;

/**
 * Whether tasks accept new steps. An end is a note of its own that never changes. The state is a second note, so that
 * admitting a request takes a single read; after each change of the state, an existing end overwrites it.
 */
export class TaskStates {
  readonly #notes: Notes;
  readonly #time: Time;
  readonly #ttl_ms: number;
  readonly #patience: BestEffortStore;

  constructor({
    store,
    time,
    log,
    configuration,
  }: Pick<RunContext, 'store' | 'time' | 'log' | 'configuration'>) {
    this.#notes = store.notes;
    this.#time = time;
    this.#ttl_ms = configuration.checkpoint.ttl_s * 1000;
    this.#patience = new BestEffortStore({ log, time }, 'tasks are not paused or ended', NAMED_WAIT_MAX_MS);
  }

  /** Rejects if the store does not answer. */
  async of(task: OwnedTask): Promise<TaskState> {
    const noted = await this.#notes.get(task.owner, stateNote(task));
    return noted === undefined ? NOTHING_SAID : stateIn(noted);
  }

  /** The state for a request that may begin the task and must not wait: `undefined` if the store does not answer. */
  async known(task: OwnedTask): Promise<TaskState | undefined> {
    return this.#patience.isResting ? undefined : this.#patience.answerOf(this.begun(task));
  }

  /** The state; begins the task if necessary. Rejects if the store does not answer. */
  async begun(task: OwnedTask): Promise<TaskState> {
    const state = await this.of(task);
    if (state.era !== '') return state;
    const first = { ...state, era: randomBytes(ERA_BYTES).toString('base64url') };
    return stateIn(await this.#notes.claim(task.owner, stateNote(task), JSON.stringify(first), this.#ttl_ms));
  }

  /** Keeps the state for at least this long from now. */
  async extend(task: OwnedTask, ttl_ms: number): Promise<void> {
    await Promise.all([
      this.#notes.extend(task.owner, stateNote(task), ttl_ms),
      this.#notes.extend(task.owner, endNote(task), ttl_ms),
    ]);
  }

  /** Stops new steps until the task is resumed. Throws `task_ended`. */
  pause(task: OwnedTask, reason?: string): Promise<TaskState> {
    return this.#set(task, 'paused', reason);
  }

  /** Throws `task_ended`. */
  resume(task: OwnedTask, reason?: string): Promise<TaskState> {
    return this.#set(task, 'running', reason);
  }

  /** Stops new steps for good. Throws `task_ended` if the task has ended with another status. */
  async end(task: OwnedTask, status: TaskEnd, { reason, kept_ms }: Ending = {}): Promise<TaskState> {
    const { owner } = task;
    const { era } = await this.begun(task);
    const isShorter = kept_ms !== undefined && kept_ms < this.#ttl_ms;
    const kept = isShorter && { kept_until_ms: this.#time.wall() + kept_ms };
    const own: TaskState = { ...this.#said(status, reason), ...kept, era };
    const end = stateIn(await this.#notes.claim(owner, endNote(task), JSON.stringify(own), this.#ttl_ms));
    await this.#write(task, end);
    if (end.status !== status) throw apiError('task_ended', { status: end.status });
    return end;
  }

  /** Deletes the state, so that its name may begin another task. */
  async forget(task: OwnedTask): Promise<void> {
    await this.#notes.consume(task.owner, endNote(task));
    await this.#notes.consume(task.owner, stateNote(task));
  }

  async #set(task: OwnedTask, status: 'running' | 'paused', reason?: string): Promise<TaskState> {
    await this.#assertGoesOn(task);
    const { era } = await this.begun(task);
    const state: TaskState = { ...this.#said(status, reason), era };
    await this.#write(task, state);
    // A concurrent end may have been written before this state.
    await this.#assertGoesOn(task);
    return state;
  }

  async #assertGoesOn(task: OwnedTask): Promise<void> {
    const noted = await this.#notes.get(task.owner, endNote(task));
    if (noted === undefined) return;
    const end = stateIn(noted);
    await this.#write(task, end);
    throw apiError('task_ended', { status: end.status });
  }

  #said(status: TaskState['status'], reason?: string): Omit<TaskState, 'era'> {
    return { status, since_ms: this.#time.wall(), ...(reason !== undefined && { reason }) };
  }

  #write(task: OwnedTask, state: TaskState): Promise<void> {
    return this.#notes.put(task.owner, stateNote(task), JSON.stringify(state), this.#ttl_ms);
  }
}

const STATUSES: readonly unknown[] = [
  'running',
  'paused',
  'completed',
  'cancelled',
] satisfies TaskState['status'][];

/** A malformed note counts as absent. */
function stateIn(noted: string): TaskState {
  const state = parsedJson(noted);
  const isState = isObject(state) && STATUSES.includes(state.status) && typeof state.era === 'string';
  return isState ? (state as unknown as TaskState) : NOTHING_SAID;
}

const stateNote = ({ task }: OwnedTask): NoteKey => ({ kind: 'task_state', name: task });
const endNote = ({ task }: OwnedTask): NoteKey => ({ kind: 'task_end', name: task });
