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

/** A restarted process whose next step differs from the one of the process before it. */
export interface TaskDivergence {
  /** The step that it skipped. */
  readonly step: number;
  /** The new step that it made instead. */
  readonly by_step: number;
  /** See `changedPaths`; `null` if the request of `step` is not stored. */
  readonly changed: readonly string[] | null;
  readonly at_ms: number;
  /** The process that diverged. */
  readonly session: string;
}

/** A new step of a session. */
interface BegunStep {
  readonly task: TaskEra;
  readonly session: string;
  readonly number: number;
  readonly body: string;
  /** The highest earlier step that the session is known to have received; 0 if none. */
  readonly had: number;
}

/** Sessions whose progress this replica tracks. */
const SESSIONS_MAX = 10_000;
/** Marks a session that needs no further checks: it has diverged, or runs in parallel with others. */
const SETTLED = Number.POSITIVE_INFINITY;

/**
 * Detects processes that diverge from their predecessors' steps, so that the owner can see why a task costs more.
 * Informational: no answer waits for it. A process diverges at most once.
 */
export class TaskDivergences {
  readonly #context: Pick<RunContext, 'store' | 'time' | 'log'>;
  readonly #records: TaskRecords;
  readonly #ttl_ms: number;
  /** The highest step that each session has received on this replica. */
  readonly #had = new Map<string, number>();

  constructor(
    { store, time, log, configuration }: Pick<RunContext, 'store' | 'time' | 'log' | 'configuration'>,
    records: TaskRecords,
  ) {
    this.#context = { store, time, log };
    this.#records = records;
    this.#ttl_ms = configuration.checkpoint.ttl_s * 1000;
  }

  /** Records that the session received the answer to an existing step. */
  returned(task: TaskEra, { session }: TaskOrigin, { records }: StoredRun): void {
    const number = records[0]?.header?.step?.number;
    if (session !== undefined && number !== undefined) this.#see(keyOf(task, session), number);
  }

  /**
   * Records that the session begins a new step. Queries the store only if the step doesn't follow the session's last
   * one on this replica, and in the background.
   */
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

  /** The task's last divergence. Rejects if the store does not answer. */
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
    // Another replica may already have noted it.
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
   * The lowest step that the session has not received; `undefined` if it has the last one. Agents repeat their steps in
   * order, so a binary search works. With concurrent requests an agent may receive a later step first, and the result
   * may not be the lowest.
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
   * Whether the missed step existed when the session received `last`, the step before it. Parallel sessions take turns
   * with new steps.
   */
  async #couldRepeat(
    missed: StoredRun | undefined,
    { task, session }: BegunStep,
    last: number,
  ): Promise<boolean> {
    const step = await this.#stepAt(task, last);
    // An expired step must be paid for again even by an identical process.
    if (!step) return false;
    const run = await this.#runFor(task, session, step);
    const own = run === undefined ? null : await this.#context.store.read(run, task.owner, 0);
    return own === null || isBefore(missed, own);
  }

  /** Undefined if it is no longer known. */
  async #stepAt(task: TaskEra, number: number): Promise<NumberedName | undefined> {
    const [step] = await this.#records.steps(task, number, number);
    return step;
  }

  /**
   * The run that the session began for the step, or would have begun if no other session had. Undefined if the session
   * has not received the step.
   */
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

/** A malformed note counts as absent. */
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
