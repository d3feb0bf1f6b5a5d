import { BestEffortStore, NAMED_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { parsedJson } from '../../lib/json.ts';
import type { Ask, RunLookup } from '../resume/run-lookup.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { AgreedTerms, NamedTerms, TaskTerms } from './agreed-terms.ts';
import type { NumberedName } from './numbered-names.ts';
import { stepNote } from './step-runs.ts';
import type { TaskObserver } from './task-observer.ts';
import type { TaskEra, TaskOrigin } from './task-records.ts';
import { isEnded, type OwnedTask, type TaskState, type TaskStates } from './task-states.ts';
import { type TaskUsage, tokensOf } from './task-usage.ts';

/** A task and the process working on it. Without a session, a repeated request is always the same step. */
export interface TaskSession extends TaskOrigin {
  readonly task: string;
  /** The client's name for the step. */
  readonly step?: string;
  /** Absent if the request contains none. */
  readonly terms?: NamedTerms;
}

/** The step that a request is. */
export interface TaskStep {
  /** The note with the step's run; absent if the store does not answer. */
  readonly note?: NoteKey;
  /** The request, with the known content of that note. */
  readonly ask: Ask;
  /** See `TaskState`; empty if the store does not answer. */
  readonly era: string;
}

/** The rules that decide whether a task accepts a new step. */
export interface TaskRules {
  readonly states: TaskStates;
  readonly terms: AgreedTerms;
  readonly usage: TaskUsage;
}

interface FoundStep extends Required<Pick<TaskStep, 'note' | 'ask'>> {
  /** The note by which this request claimed the step for the session, if it did. */
  readonly claimed?: NoteKey;
}

/** How many answers to one request a session gets as steps. Further repetitions are no steps. */
const SAMPLES_MAX = 64;

/**
 * Finds the step that a request is. A step is identified by its content: the request, and how many answers to it the
 * session already has. A restarted process thus finds its predecessor's steps in order, while a request for a second
 * answer gets a new one.
 */
export class TaskSteps {
  readonly #context: RunContext;
  readonly #lookup: RunLookup;
  readonly #rules: TaskRules;
  readonly #observer: TaskObserver | undefined;
  readonly #patience: BestEffortStore;

  constructor(context: RunContext, lookup: RunLookup, rules: TaskRules, observer?: TaskObserver) {
    this.#context = context;
    this.#lookup = lookup;
    this.#rules = rules;
    this.#observer = observer;
    this.#patience = new BestEffortStore(context, 'steps of tasks are not recognised', NAMED_WAIT_MAX_MS);
  }

  /**
   * Throws `task_paused`, `task_ended`, `task_deadline_passed` and `task_budget_spent` if the request would be a new
   * step, or continue a cut one.
   */
  async stepOf(ask: Ask, session: TaskSession): Promise<TaskStep> {
    const { owner } = ask;
    const task: OwnedTask = { owner, task: session.task };
    const [found, state, terms] = await Promise.all([
      this.#find(ask, session),
      this.#rules.states.known(task),
      this.#termsOf(task, session.terms),
    ]);
    const { era = '' } = state ?? {};
    const ofEra: TaskEra = { ...task, era };
    const refusal = await this.#refusalOf(ofEra, state, terms);
    if (!refusal || (found && (await this.#isAnswered(found))))
      return { era, ask: found?.ask ?? ask, ...(found && { note: found.note }) };
    // Otherwise a repetition would look for an answer that the session never received.
    if (found?.claimed) void this.#patience.answerOf(this.#context.store.notes.consume(owner, found.claimed));
    this.#context.metrics.steps.inc({ outcome: 'refused' });
    this.#observer?.refused(ofEra, refusal.code, terms ?? {});
    throw refusal;
  }

  /** Deletes the record of which answers a session has received. */
  async forgetSession({ owner, task }: OwnedTask, session: string, step: NumberedName): Promise<void> {
    const note = sessionNoteOf(task, session, step);
    if (note) await this.#context.store.notes.consume(owner, note);
  }

  /** Undefined if the store does not answer. */
  #termsOf(task: OwnedTask, named: NamedTerms | undefined): Promise<TaskTerms | undefined> {
    if (this.#patience.isResting) return Promise.resolve(undefined);
    const { terms } = this.#rules;
    return this.#patience.answerOf(named ? terms.agreed(task, named) : terms.of(task));
  }

  async #refusalOf(
    task: TaskEra,
    state: TaskState | undefined,
    { deadline_at_ms, budget_tokens }: TaskTerms = {},
  ): Promise<ApiError | undefined> {
    if (state?.status === 'paused') return apiError('task_paused');
    if (state && isEnded(state)) return apiError('task_ended', { status: state.status });
    if (deadline_at_ms !== undefined && this.#context.time.wall() >= deadline_at_ms)
      return apiError('task_deadline_passed');
    if (budget_tokens === undefined) return undefined;
    const spent = await this.#spentBy(task);
    if (spent === undefined || spent < budget_tokens) return undefined;
    return apiError('task_budget_spent', { spent, budget: budget_tokens });
  }

  /** Undefined if the store fails. Not limited in time, because the store has just answered. */
  async #spentBy(task: TaskEra): Promise<number | undefined> {
    try {
      return tokensOf(await this.#rules.usage.of(task));
    } catch (error) {
      this.#context.log.warn(
        { task: task.task, err: error },
        'a step began although the budget of its task may be spent',
      );
      return undefined;
    }
  }

  /** An unknown step is claimed for this request. */
  async #find(ask: Ask, { task, session }: TaskSession): Promise<FoundStep | undefined> {
    const { store, configuration } = this.#context;
    const { owner, digest, fresh } = ask;
    for (let samples = 0; samples < SAMPLES_MAX; samples++) {
      const note = stepNote(JSON.stringify([task, digest, samples]));
      const noted = await this.#lookup.claim({ ...ask, session }, note);
      if (noted === undefined) return undefined;
      if (noted === 'own') return { note, ask: { ...ask, note, noted, session }, claimed: note };
      const step = { ...ask, note, session: noted.session };
      if (session === undefined) return { note, ask: { ...step, noted } };
      if (noted.session !== session) {
        const claimed = sessionNote(task, session, digest, samples);
        const claim = store.notes.claim(owner, claimed, fresh, configuration.checkpoint.ttl_s * 1000);
        const first = await this.#patience.answerOf(claim);
        if (first === undefined) return undefined;
        if (first === fresh) return { note, ask: { ...step, noted }, claimed };
      }
      if (await this.#lookup.isOwed(step, note)) return { note, ask: step };
    }
    return undefined;
  }

  async #isAnswered({ note, ask: { owner, noted } }: FoundStep): Promise<boolean> {
    return noted !== 'own' && this.#lookup.isAnswered(owner, note);
  }
}

/**
 * Notes that the session received an answer begun for another one. `samples`: how many answers to the request it had
 * before.
 */
const sessionNote = (task: string, session: string, digest: unknown, samples: unknown): NoteKey => ({
  kind: 'task_session',
  name: JSON.stringify([task, session, digest, samples]),
});

/** The note for a numbered step; undefined if its name has another format. */
export function sessionNoteOf(
  task: string,
  session: string,
  { name }: Pick<NumberedName, 'name'>,
): NoteKey | undefined {
  const parts = parsedJson(name);
  if (!Array.isArray(parts)) return undefined;
  const [, digest, samples] = parts;
  return sessionNote(task, session, digest, samples);
}
