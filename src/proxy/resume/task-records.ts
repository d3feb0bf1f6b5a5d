import { BestEffortStore } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import type { RunContext } from '../run/context/run-context.ts';

/** How many steps of a task are numbered. What comes after them is answered all the same. */
export const STEPS_MAX = 10_000;
/** How many times another step may be a moment ahead. */
const TURNS_MAX = 16;
/** Tasks whose records this replica has at hand. */
const TASKS_MAX = 10_000;
/** A task outlives its last step, whose age when the task was noted is at most this share of it. */
const NOTED_SHARE = 0.1;

/** What is noted of a task: nothing is, before one of its requests was answered. */
export interface TaskRecord {
  /** When its first answer began; unknown of what older versions have noted. */
  readonly created_at_ms?: number;
  /** The number of its last step, or of one shortly before that. */
  readonly steps: number;
}

/** One step of a task. */
export interface NumberedStep {
  readonly number: number;
  /** Where the run of the step is noted. */
  readonly note: NoteKey;
}

/**
 * Which tasks there are, and which steps they have. A step gets the next number of its task with its first request. Each
 * number is a note of its own that is never changed, so all replicas see the same steps, in the same order.
 */
export class TaskRecords {
  readonly #context: Pick<RunContext, 'log' | 'time'>;
  readonly #notes: Notes;
  readonly #ttl_ms: number;
  readonly #patience: BestEffortStore;
  readonly #records = new Map<string, TaskRecord>();
  /** When they were noted here, by the clock that only runs forward. */
  readonly #noted_ms = new Map<string, number>();

  constructor({ configuration, store, log, time }: RunContext) {
    this.#context = { log, time };
    this.#notes = store.notes;
    this.#ttl_ms = configuration.checkpoint.ttl_s * 1000;
    this.#patience = new BestEffortStore({ log, time }, 'steps of tasks are not numbered');
  }

  /** A request of the task is being answered. */
  answered(owner: Owner, task: string): void {
    const { log, time } = this.#context;
    const key = keyOf(owner, task);
    const noted_ms = this.#noted_ms.get(key) ?? Number.NEGATIVE_INFINITY;
    if (time.now() - noted_ms < NOTED_SHARE * this.#ttl_ms) return;
    remember(this.#noted_ms, key, time.now(), TASKS_MAX);
    this.#note(owner, task).catch((error: unknown) => {
      this.#noted_ms.delete(key);
      log.warn(
        { err: error },
        'a task could not be noted: its tool calls cannot be claimed before its next step',
      );
    });
  }

  /** Rejects where the store does not answer. */
  async has(owner: Owner, task: string): Promise<boolean> {
    return (await this.#notes.get(owner, taskNote(task))) !== undefined;
  }

  /** Undefined where the owner has no such task. Rejects where the store does not answer. */
  async find(owner: Owner, task: string): Promise<TaskRecord | undefined> {
    const noted = await this.#notes.get(owner, taskNote(task));
    if (noted === undefined) return undefined;
    const record = recordIn(noted);
    return { ...record, steps: await this.#last(owner, task, record.steps) };
  }

  /** The number of a step, which is noted there; `undefined` where it has none, or the store does not say. */
  async numberOf(owner: Owner, task: string, step: NoteKey): Promise<number | undefined> {
    return this.#patience.isResting
      ? undefined
      : this.#patience.answerOf(this.#claimNumber(owner, task, step));
  }

  /** Those of the steps from `first` to `last` that are still known, all asked for at once. Rejects where the store does not answer. */
  async steps(owner: Owner, task: string, first: number, last: number): Promise<readonly NumberedStep[]> {
    const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const names = await Promise.all(
      numbers.map((number) => this.#notes.get(owner, numberNote(task, number))),
    );
    return names.flatMap((name, index) =>
      name === undefined ? [] : { number: first + index, note: { kind: 'step' as const, name } },
    );
  }

  /**
   * In each turn, all callers that number this step at the same time agree on a number for it, and on the step that has the
   * number: this one, or another one that was a moment ahead.
   */
  async #claimNumber(owner: Owner, task: string, step: NoteKey): Promise<number | undefined> {
    const claim = (note: NoteKey, value: string) => this.#notes.claim(owner, note, value, this.#ttl_ms);
    let last = (await this.#recall(owner, task)).steps;
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      const number = Number(await claim(turnNote(step, turn), String(last + 1)));
      if (number > STEPS_MAX) return undefined;
      const holder = await claim(numberNote(task, number), step.name);
      this.#seen(owner, task, number);
      if (holder === step.name) return number;
      last = await this.#last(owner, task, number);
    }
    return undefined;
  }

  /** The number of the last step, which is at least `known`. */
  async #last(owner: Owner, task: string, known: number): Promise<number> {
    const isThere = async (number: number) =>
      (await this.#notes.get(owner, numberNote(task, number))) !== undefined;
    let last = known;
    let stride = 1;
    while (await isThere(last + stride)) {
      last += stride;
      stride *= 2;
    }
    for (stride /= 2; stride >= 1; stride /= 2) if (await isThere(last + stride)) last += stride;
    return last;
  }

  async #recall(owner: Owner, task: string): Promise<TaskRecord> {
    const known = this.#records.get(keyOf(owner, task));
    if (known) return known;
    const noted = await this.#notes.get(owner, taskNote(task));
    const record =
      noted === undefined ? { created_at_ms: this.#context.time.wall(), steps: 0 } : recordIn(noted);
    this.#keep(owner, task, record);
    return record;
  }

  async #note(owner: Owner, task: string): Promise<void> {
    const record = await this.#recall(owner, task);
    const ttl_ms = (1 + NOTED_SHARE) * this.#ttl_ms;
    await this.#notes.put(owner, taskNote(task), JSON.stringify(record), ttl_ms);
  }

  #seen(owner: Owner, task: string, number: number): void {
    const known = this.#records.get(keyOf(owner, task));
    if (known && number > known.steps) this.#keep(owner, task, { ...known, steps: number });
  }

  #keep(owner: Owner, task: string, record: TaskRecord): void {
    remember(this.#records, keyOf(owner, task), record, TASKS_MAX);
  }
}

/** What an older version has noted, or a strange hand, says only that there is a task. */
function recordIn(noted: string): TaskRecord {
  const record = parsedJson(noted);
  if (!isObject(record) || !Number.isSafeInteger(record.steps)) return { steps: 0 };
  return record as unknown as TaskRecord;
}

const keyOf = (owner: Owner, task: string): string => `${owner} ${task}`;

const taskNote = (task: string): NoteKey => ({ kind: 'task', name: task });
const turnNote = ({ name }: NoteKey, turn: number): NoteKey => ({
  kind: 'step_number',
  name: `${name} ${turn}`,
});
const numberNote = (task: string, number: number): NoteKey => ({
  kind: 'task_step',
  name: JSON.stringify([task, number]),
});
