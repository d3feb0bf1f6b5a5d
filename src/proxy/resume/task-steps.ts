import { BestEffortStore } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { Ask, RunLookup } from './run-lookup.ts';

/** A task, and the process that works on it. */
export interface TaskSession {
  /** `Holdfast-Task` */
  readonly task: string;
  /** `Holdfast-Task-Session`; without one, a request that is sent again is always the same step. */
  readonly session?: string;
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
  readonly #patience: BestEffortStore;

  constructor(context: RunContext, lookup: RunLookup) {
    this.#context = context;
    this.#lookup = lookup;
    this.#patience = new BestEffortStore(context, 'steps of tasks are not recognised');
  }

  /** Where the run of the step is noted; `undefined` where the store does not say which step it is. */
  async noteOf(ask: Ask, { task, session }: TaskSession): Promise<NoteKey | undefined> {
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
