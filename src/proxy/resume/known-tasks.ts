import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';
import type { RunContext } from '../run/context/run-context.ts';

/** What this replica has noted and would note again at the next answer. */
const NOTED_MAX = 10_000;
/** A task outlives its last step, whose age when the task was noted is at most this share of it. */
const NOTED_SHARE = 0.1;

/** Which tasks have had an answer: nothing is kept for those of credentials that no provider has answered. */
export class KnownTasks {
  readonly #context: Pick<RunContext, 'log' | 'time'>;
  readonly #notes: Notes;
  readonly #ttl_ms: number;
  /** When they were noted here, by the clock that only runs forward. */
  readonly #noted_ms = new Map<string, number>();

  constructor({ configuration, store, log, time }: RunContext) {
    this.#context = { log, time };
    this.#notes = store.notes;
    this.#ttl_ms = configuration.checkpoint.ttl_s * 1000;
  }

  /** A step of the task is being answered. */
  answered(owner: Owner, task: string): void {
    const { log, time } = this.#context;
    const now_ms = time.now();
    const name = keyOf(owner, task);
    const noted_ms = this.#noted_ms.get(name) ?? Number.NEGATIVE_INFINITY;
    if (now_ms - noted_ms < NOTED_SHARE * this.#ttl_ms) return;
    remember(this.#noted_ms, name, now_ms, NOTED_MAX);
    this.#notes.put(owner, noteOf(task), '', (1 + NOTED_SHARE) * this.#ttl_ms).catch((error: unknown) => {
      this.#noted_ms.delete(name);
      log.warn(
        { err: error },
        'a task could not be noted: its tool calls cannot be claimed before its next step',
      );
    });
  }

  /** Rejects where the store does not answer. */
  async has(owner: Owner, task: string): Promise<boolean> {
    return (await this.#notes.get(owner, noteOf(task))) !== undefined;
  }
}

const keyOf = (owner: Owner, task: string): string => `${owner} ${task}`;

const noteOf = (task: string): NoteKey => ({ kind: 'task', name: task });
