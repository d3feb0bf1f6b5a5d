import { BestEffortStore, NAMED_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { AgreedNumbers } from './agreed-numbers.ts';
import { type NumberedList, type NumberedName, NumberedNames } from './numbered-names.ts';
import { ShrinkingLists } from './shrinking-lists.ts';
import type { OwnedTask } from './task-states.ts';

/** How many steps of a task are numbered. Later steps are still answered. */
export const STEPS_MAX = 10_000;
/** How many of an owner's tasks are listed, newest first. */
export const TASKS_LISTED_MAX = 10_000;
/** Size of this replica's caches for tasks and session names. */
const TASKS_MAX = 10_000;
/** How many named sessions of a task are recorded. */
const SESSIONS_MAX = 1000;
/**
 * A task is noted again after this share of its retention. The retention is extended by the same share, so that the
 * task outlives its last step.
 */
const NOTED_SHARE = 0.1;

/** A task in one era, which excludes purged tasks of the same name. */
export interface TaskEra extends OwnedTask {
  /** See `TaskState`. */
  readonly era: string;
}

/** The record of a task. It doesn't exist before a request was answered or terms were put. */
export interface TaskRecord {
  /** When it was first noted; absent in records from older versions. */
  readonly created_at_ms?: number;
  /** The parent task, according to its first request. */
  readonly parent?: string;
  /** Its number in the list of the owner's tasks. */
  readonly number?: number;
  /** The number of its last step, or slightly lower. */
  readonly steps: number;
  /** The same for tool calls; absent means 0. */
  readonly calls?: number;
  /** The same for sessions. */
  readonly sessions?: number;
}

/** Task-related facts from a request. */
export interface TaskOrigin {
  readonly session?: string;
  readonly parent?: string;
}

/** Data about tasks that is stored elsewhere. */
interface Belongings {
  /** Keeps it for at least this long from now. */
  extend(task: OwnedTask, ttl_ms: number): Promise<void>;
}

/** Records an owner's tasks, and their steps, claimed tool calls and sessions. */
export class TaskRecords {
  readonly #context: Pick<RunContext, 'log' | 'time' | 'metrics'>;
  readonly #notes: Notes;
  readonly #ttl_ms: number;
  readonly #patience: BestEffortStore;
  readonly #belongings: readonly Belongings[];
  readonly #tasks: ShrinkingLists;
  readonly #steps: NumberedNames;
  readonly #calls: AgreedNumbers;
  readonly #sessions: AgreedNumbers;
  readonly #records = new Map<string, TaskRecord>();
  /** When tasks were last noted here, on the monotonic clock. */
  readonly #noted_ms = new Map<string, number>();
  /** Sessions that are noted or about to be. */
  readonly #notedSessions = new Map<string, true>();

  constructor(
    {
      configuration,
      store,
      log,
      time,
      metrics,
    }: Pick<RunContext, 'configuration' | 'store' | 'log' | 'time' | 'metrics'>,
    belongings: readonly Belongings[],
  ) {
    const { notes } = store;
    const ttl_ms = configuration.checkpoint.ttl_s * 1000;
    this.#context = { log, time, metrics };
    this.#notes = notes;
    this.#belongings = belongings;
    this.#ttl_ms = ttl_ms;
    this.#patience = new BestEffortStore({ log, time }, 'steps of tasks are not numbered', NAMED_WAIT_MAX_MS);
    this.#tasks = new ShrinkingLists({
      notes,
      // A task is noted again while it has answers, and its number must outlive those.
      ttl_ms: (1 + NOTED_SHARE) * ttl_ms,
      kind: 'owner_task',
      turn: 'task_number',
      last: 'last_task',
    });
    this.#steps = new NumberedNames({
      notes,
      ttl_ms,
      kind: 'task_step',
      numbers_max: STEPS_MAX,
    });
    this.#calls = new AgreedNumbers({
      notes,
      ttl_ms,
      kind: 'task_call',
      turn: 'call_number',
      numbers_max: Number.MAX_SAFE_INTEGER,
    });
    this.#sessions = new AgreedNumbers({
      notes,
      ttl_ms,
      kind: 'session_of_task',
      turn: 'session_number',
      numbers_max: SESSIONS_MAX,
    });
  }

  /** Records that a request of the task is being answered. */
  answered(task: TaskEra, { session, parent }: TaskOrigin = {}): void {
    const { log, time } = this.#context;
    const key = keyOf(task);
    if (session !== undefined) this.#noteSession(task, session);
    const noted_ms = this.#noted_ms.get(key) ?? Number.NEGATIVE_INFINITY;
    if (time.now() - noted_ms < NOTED_SHARE * this.#ttl_ms) return;
    remember(this.#noted_ms, key, time.now(), TASKS_MAX);
    this.#note(task, parent).catch((error: unknown) => {
      this.#noted_ms.delete(key);
      log.warn({ task: task.task, err: error }, 'could not store a task: its next step lists it');
    });
  }

  /** Notes a task before any of its requests is answered. Rejects if the store does not answer. */
  async declare(task: TaskEra): Promise<void> {
    if (!(await this.noted(task))) await this.#note(task);
  }

  /** The last record of the task; undefined if the owner has no such task. Rejects if the store does not answer. */
  async noted({ owner, task }: OwnedTask): Promise<TaskRecord | undefined> {
    const noted = await this.#notes.get(owner, taskNote(task));
    return noted === undefined ? undefined : recordIn(noted);
  }

  /**
   * The record, or a minimal one if the task has begun: a task is noted after its first answer begins, but its first
   * step is numbered before. Rejects if the store does not answer.
   */
  async begun(task: OwnedTask): Promise<TaskRecord | undefined> {
    const record = await this.noted(task);
    if (record) return record;
    const first = await this.#steps.nameAt({ owner: task.owner, name: task.task }, 1);
    return first === undefined ? undefined : { steps: 1 };
  }

  /** The record with current counts. Rejects if the store does not answer. */
  async find(task: TaskEra): Promise<TaskRecord | undefined> {
    const record = await this.noted(task);
    return record && { ...record, ...(await this.counts(task, record)) };
  }

  /**
   * The numbers of the task's last step, call and session. `record`: earlier counts; if they are still current, this
   * takes three reads. Rejects if the store does not answer.
   */
  async counts(
    task: TaskEra,
    { steps, calls = 0, sessions = 0 }: Pick<TaskRecord, 'steps' | 'calls' | 'sessions'>,
  ): Promise<Required<Pick<TaskRecord, 'steps' | 'calls' | 'sessions'>>> {
    const list = listOf(task);
    const [lastStep, lastCall, lastSession] = await Promise.all([
      this.lastStep(task, steps),
      this.#calls.lastOf(list, calls),
      this.#sessions.lastOf(list, sessions),
    ]);
    return { steps: lastStep, calls: lastCall, sessions: lastSession };
  }

  /**
   * The number of the step with this note; `undefined` if it has none, or the store does not answer. Never rejects.
   * `isNew`: no request was this step before; true only once per step.
   */
  async numberOf(task: TaskEra, { name }: NoteKey, isNew: boolean): Promise<number | undefined> {
    if (this.#patience.isResting) return undefined;
    const list = listOf(task);
    const numbering = async () => {
      const last = this.#steps.seen(list) ?? (await this.#recall(task)).steps;
      const number = isNew ? undefined : await this.#steps.find(list, name, last);
      return number ?? this.#steps.add(list, name, last);
    };
    return this.#patience.answerOf(numbering());
  }

  /** The steps from `first` to `last` that are still known, named like their notes. */
  steps(task: TaskEra, first: number, last: number): Promise<readonly NumberedName[]> {
    return this.#steps.names(listOf(task), first, last);
  }

  /** Numbers a tool call before its first claim. */
  async noteCall(task: TaskEra, { calls = 0 }: TaskRecord, key: string): Promise<void> {
    await this.#calls.numberOf(listOf(task), key, calls);
  }

  /** The calls from `first` to `last` that are still known, named by their keys. */
  calls(task: TaskEra, first: number, last: number): Promise<readonly NumberedName[]> {
    return this.#calls.names(listOf(task), first, last);
  }

  /** The sessions from `first` to `last` that are still known. */
  sessions(task: TaskEra, first: number, last: number): Promise<readonly NumberedName[]> {
    return this.#sessions.names(listOf(task), first, last);
  }

  /** The number of an owner's last task; 0 if there is none. */
  lastTask(owner: Owner): Promise<number> {
    return this.#tasks.last(tasksOf(owner));
  }

  /** The tasks from `first` to `last` that are still known. */
  tasks(owner: Owner, first: number, last: number): Promise<readonly NumberedName[]> {
    return this.#tasks.names(tasksOf(owner), first, last);
  }

  async forgetStep(task: TaskEra, step: NumberedName): Promise<void> {
    await this.#steps.remove(listOf(task), step);
  }

  async forgetCall(task: TaskEra, call: NumberedName): Promise<void> {
    await this.#calls.remove(listOf(task), call);
  }

  async forgetSession(task: TaskEra, session: NumberedName): Promise<void> {
    await this.#sessions.remove(listOf(task), session);
    this.#notedSessions.delete(sessionKey(task, session.name));
  }

  /** Deletes the task's record. Delete its steps, calls and sessions first. */
  async forget({ owner, task }: OwnedTask, { number }: TaskRecord): Promise<void> {
    if (number !== undefined) await this.#tasks.remove(tasksOf(owner), { number, name: task });
    await this.#notes.consume(owner, taskNote(task));
  }

  /** The number of the last step; 0 if there is none. */
  lastStep(task: TaskEra, known = 0): Promise<number> {
    return this.#steps.lastOf(listOf(task), known);
  }

  #noteSession(task: TaskEra, session: string): void {
    const key = sessionKey(task, session);
    if (this.#notedSessions.has(key)) return;
    remember(this.#notedSessions, key, true, TASKS_MAX);
    // In the background; a failure is retried with the next answer.
    this.#sessions.numberOf(listOf(task), session, 0).catch(() => this.#notedSessions.delete(key));
  }

  async #recall(task: TaskEra): Promise<TaskRecord> {
    const known = this.#records.get(keyOf(task));
    if (known) return known;
    const record = (await this.noted(task)) ?? { created_at_ms: this.#context.time.wall(), steps: 0 };
    remember(this.#records, keyOf(task), record, TASKS_MAX);
    return record;
  }

  async #note(task: TaskEra, parent?: string): Promise<void> {
    const { owner } = task;
    const noted = await this.noted(task);
    const known = noted ?? (await this.#recall(task));
    // Renews its number for as long as the record.
    const number = await this.#tasks.add(tasksOf(owner), task.task, known.number);
    const counts = await this.counts(task, known);
    const record: TaskRecord = {
      ...(parent !== undefined && { parent }),
      ...known,
      ...counts,
      ...(number !== undefined && { number }),
    };
    remember(this.#records, keyOf(task), record, TASKS_MAX);
    // Retried with the next answer.
    if (number === undefined) this.#noted_ms.delete(keyOf(task));
    const status = record.steps === 0 ? 'pending' : 'running';
    if (noted === undefined || (noted.steps === 0 && status === 'running'))
      this.#context.metrics.tasks.inc({ status });
    const ttl_ms = (1 + NOTED_SHARE) * this.#ttl_ms;
    await this.#notes.put(owner, taskNote(task.task), JSON.stringify(record), ttl_ms);
    await Promise.all(this.#belongings.map((belongings) => belongings.extend(task, ttl_ms)));
  }
}

/** A malformed note, or one from an older version, only shows that the task exists. */
function recordIn(noted: string): TaskRecord {
  const record = parsedJson(noted);
  if (!isObject(record) || !Number.isSafeInteger(record.steps)) return { steps: 0 };
  return record as unknown as TaskRecord;
}

const keyOf = ({ owner, task, era }: TaskEra): string => JSON.stringify([owner, task, era]);
const sessionKey = (task: TaskEra, session: string): string => JSON.stringify([keyOf(task), session]);
const listOf = ({ owner, task, era }: TaskEra): NumberedList => ({ owner, name: task, era });
const tasksOf = (owner: Owner): NumberedList => ({ owner, name: '', era: '' });

const taskNote = (task: string): NoteKey => ({ kind: 'task', name: task });
