import type { NoteKey } from '../../checkpoint/notes.ts';
import { isRunId, type RunId, type StoredRun } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { NumberedName } from './numbered-names.ts';
import { changedPaths } from './request-difference.ts';
import { knownStep, storedStep } from './step-runs.ts';
import type { TaskEra, TaskOrigin, TaskRecords } from './task-records.ts';
import { sessionNoteOf } from './task-steps.ts';

/** That a process which has begun its task again had a new step where the process before it had another one. */
export interface TaskDivergence {
  /** The step that it did not come to. */
  readonly step: number;
  /** The one that it had instead. */
  readonly by_step: number;
  /** See `changedPaths`; `null` where the request of `step` is not kept. */
  readonly changed: readonly string[] | null;
  readonly at_ms: number;
  /** The process. */
  readonly session: string;
}

/** A new step of a session. */
interface BegunStep {
  readonly task: TaskEra;
  readonly session: string;
  readonly number: number;
  readonly body: string;
  /** The highest step before it that the session is known to have had; 0 where none is. */
  readonly had: number;
}

/** Sessions of which this replica knows how far they have come. */
const SESSIONS_MAX = 10_000;
/** Of a session that is not looked at any more: it has diverged, or has gone its own way beside others. */
const SETTLED = Number.POSITIVE_INFINITY;

/**
 * Finds out which processes have diverged from the steps of those before them, so that their owner can tell why they pay. It is only
 * shown: nothing depends on it, and no answer waits for it. A process diverges once.
 */
export class TaskDivergences {
  readonly #context: Pick<RunContext, 'store' | 'time' | 'log'>;
  readonly #records: TaskRecords;
  readonly #ttl_ms: number;
  /** The highest step that each session has had here. */
  readonly #had = new Map<string, number>();

  constructor(
    { store, time, log, configuration }: Pick<RunContext, 'store' | 'time' | 'log' | 'configuration'>,
    records: TaskRecords,
  ) {
    this.#context = { store, time, log };
    this.#records = records;
    this.#ttl_ms = configuration.checkpoint.ttl_s * 1000;
  }

  /** The session is given the answer to a step that was begun before. */
  returned(task: TaskEra, { session }: TaskOrigin, { records }: StoredRun): void {
    const number = records[0]?.header?.step?.number;
    if (session !== undefined && number !== undefined) this.#see(keyOf(task, session), number);
  }

  /** The session begins a new step. The store is asked, behind the answer, only where that does not follow the last one it had here. */
  began(task: TaskEra, { session }: TaskOrigin, number: number, body: string): void {
    if (session === undefined) return;
    const key = keyOf(task, session);
    const had = this.#had.get(key) ?? 0;
    const isNext = had >= number - 1;
    this.#see(key, isNext ? number : SETTLED);
    if (isNext) return;
    this.#look({ task, session, number, body, had }).then(
      (outcome) => outcome === 'goes_on' && remember(this.#had, key, number, SESSIONS_MAX),
      (error: unknown) =>
        this.#context.log.warn({ task: task.task, err: error }, 'could not check whether a process diverged'),
    );
  }

  /** The last one of the task. Rejects where the store does not answer, as the following does. */
  async of(task: TaskEra): Promise<TaskDivergence | undefined> {
    const noted = await this.#context.store.notes.get(task.owner, divergenceNote(task));
    return noted === undefined ? undefined : divergenceIn(noted);
  }

  async forget(task: TaskEra): Promise<void> {
    await this.#context.store.notes.consume(task.owner, divergenceNote(task));
  }

  #see(key: string, number: number): void {
    remember(this.#had, key, Math.max(number, this.#had.get(key) ?? 0), SESSIONS_MAX);
  }

  async #look(begun: BegunStep): Promise<'goes_on' | 'settled'> {
    const { store, time, log } = this.#context;
    const { task, session, number, body } = begun;
    const step = await this.#firstMissed(begun);
    if (step === undefined) return 'goes_on';
    const missed = await this.#storedAt(task, step);
    if (step > 1 && !(await this.#couldRepeat(missed, begun, step - 1))) return 'settled';
    // Another replica may have noted this already.
    if ((await this.of(task))?.session === session) return 'settled';
    const before = missed?.records[0]?.header?.body;
    const divergence: TaskDivergence = {
      step,
      by_step: number,
      changed: before === undefined ? null : changedPaths(before, body),
      at_ms: time.wall(),
      session,
    };
    await store.notes.put(task.owner, divergenceNote(task), JSON.stringify(divergence), this.#ttl_ms);
    const { at_ms: _at_ms, session: _session, ...told } = divergence;
    log.info({ task: task.task, ...told }, 'a process diverged from the earlier steps of its task');
    return 'settled';
  }

  /**
   * The lowest step that the session has not had; `undefined` where it has had the last one. Agents repeat their steps in order,
   * so half of them at a time can be left out. Where an agent has several requests under way at once, it may have had a later
   * step before an earlier one, and another step than the lowest may be named.
   */
  async #firstMissed({ task, session, number, had }: BegunStep): Promise<number | undefined> {
    const isMissed = async (at: number): Promise<boolean> => {
      const step = await this.#stepAt(task, at);
      return step !== undefined && (await this.#runFor(task, session, step)) === undefined;
    };
    let missed = number - 1;
    if (!(await isMissed(missed))) return undefined;
    for (let low = had; missed - low > 1; ) {
      const middle = Math.floor((low + missed) / 2);
      if (await isMissed(middle)) missed = middle;
      else low = middle;
    }
    return missed;
  }

  /**
   * Whether a step was there to be repeated when the session had `last`, the one before it. Sessions that work side by side
   * have steps of their own in turn.
   */
  async #couldRepeat(
    missed: StoredRun | undefined,
    { task, session }: BegunStep,
    last: number,
  ): Promise<boolean> {
    const step = await this.#stepAt(task, last);
    // What is not kept any more is paid again by whatever is the same.
    if (!step) return false;
    const run = await this.#runFor(task, session, step);
    const own = run === undefined ? null : await this.#context.store.read(run, task.owner, 0);
    return own === null || isBefore(missed, own);
  }

  /** Undefined where it is known no longer. */
  async #stepAt(task: TaskEra, number: number): Promise<NumberedName | undefined> {
    const [step] = await this.#records.steps(task, number, number);
    return step;
  }

  /** What the session has begun for the step, or was to begin if no other one had. Undefined where it has not had the step. */
  async #runFor(task: TaskEra, session: string, step: NumberedName): Promise<RunId | undefined> {
    const { store } = this.#context;
    const known = await knownStep(store, task.owner, step.name);
    if (known?.session === session) return known.run;
    const note = sessionNoteOf(task.task, session, step);
    const run = note && (await store.notes.get(task.owner, note));
    return run !== undefined && isRunId(run) ? run : undefined;
  }

  async #storedAt(task: TaskEra, number: number): Promise<StoredRun | undefined> {
    const step = await this.#stepAt(task, number);
    return step && (await storedStep(this.#context.store, task.owner, step.name))?.stored;
  }
}

const beganAt = (stored: StoredRun | undefined): number | undefined =>
  stored?.records[0]?.header?.created_at_ms;

function isBefore(one: StoredRun | undefined, other: StoredRun): boolean {
  const [one_ms, other_ms] = [beganAt(one), beganAt(other)];
  return one_ms !== undefined && other_ms !== undefined && one_ms < other_ms;
}

/** A malformed note counts as none. */
function divergenceIn(noted: string): TaskDivergence | undefined {
  const divergence = parsedJson(noted);
  if (!isObject(divergence)) return undefined;
  const { session, step, by_step, changed, at_ms } = divergence;
  const areNumbers = [step, by_step, at_ms].every(Number.isSafeInteger);
  const arePaths =
    changed === null || (Array.isArray(changed) && changed.every((path) => typeof path === 'string'));
  if (!areNumbers || !arePaths || typeof session !== 'string') return undefined;
  return divergence as unknown as TaskDivergence;
}

const keyOf = ({ owner, task, era }: TaskEra, session: string): string =>
  JSON.stringify([owner, task, era, session]);

const divergenceNote = ({ task, era }: TaskEra): NoteKey => ({
  kind: 'task_divergence',
  name: JSON.stringify([task, era]),
});
