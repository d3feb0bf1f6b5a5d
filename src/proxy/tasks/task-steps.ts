import { BestEffortStore } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import { apiError } from '../../lib/errors.ts';
import type { Ask, RunLookup } from '../resume/run-lookup.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { TaskStates } from './task-states.ts';

/** A task, and the process that works on it. */
export interface TaskSession {
  /** `Holdfast-Task` */
  readonly task: string;
  /** `Holdfast-Task-Session`; without one, a request that is sent again is always the same step. */
  readonly session?: string;
}

/** What a request is of its task. */
export interface TaskStep {
  /** Where the run of the step is noted; absent where the store does not say which step it is. */
  readonly note?: NoteKey;
  /** See `TaskState`; that of a task that was never purged where the store does not say. */
  readonly era: string;
}

/** How many answers to one request a session has of its task. What it sends after that is no step. */
const SAMPLES_MAX = 64;

/**
 * Finds the step of its task that a request is. A step is known by its content: the request, and how many answers to it its
 * session has had. A process that begins the task anew so comes to the steps of the one before it, one after the other,
 * while one that wants a second answer to the same request is given one.
 */
export class TaskSteps {
  readonly #context: RunContext;
  readonly #lookup: RunLookup;
  readonly #states: TaskStates;
  readonly #patience: BestEffortStore;

  constructor(context: RunContext, lookup: RunLookup, states: TaskStates) {
    this.#context = context;
    this.#lookup = lookup;
    this.#states = states;
    this.#patience = new BestEffortStore(context, 'steps of tasks are not recognised');
  }

  /** Throws `task_paused` and `task_ended` for what would be a new step of such a task, or would continue one that was cut. */
  async stepOf(ask: Ask, session: TaskSession): Promise<TaskStep> {
    const { owner } = ask;
    const [note, state] = await Promise.all([
      this.#noteOf(ask, session),
      this.#states.known({ owner, task: session.task }),
    ]);
    const { status = 'running', era = '' } = state ?? {};
    const step: TaskStep = { era, ...(note && { note }) };
    if (status === 'running' || (note && (await this.#lookup.isAnswered(owner, note)))) return step;
    this.#context.metrics.steps.inc({ outcome: 'refused' });
    throw status === 'paused' ? apiError('task_paused') : apiError('task_ended', { status });
  }

  async #noteOf(ask: Ask, { task, session }: TaskSession): Promise<NoteKey | undefined> {
    const { store, configuration } = this.#context;
    const { owner, digest, fresh } = ask;
    for (let had = 0; had < SAMPLES_MAX; had++) {
      const step: NoteKey = { kind: 'step', name: JSON.stringify([task, digest, had]) };
      if (session === undefined) return step;
      const own: NoteKey = { kind: 'task_session', name: JSON.stringify([task, session, digest, had]) };
      const claim = store.notes.claim(owner, own, fresh, configuration.checkpoint.ttl_s * 1000);
      const first = await this.#patience.answerOf(claim);
      if (first === undefined) return undefined;
      if (first === fresh || (await this.#lookup.isOwed({ ...ask, note: step }, step))) return step;
    }
    return undefined;
  }
}
