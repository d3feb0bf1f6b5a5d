import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import type { Time } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { OwnedTask } from './task-states.ts';

/** The description and limits of a task. */
export interface TaskTerms {
  /** For people. */
  readonly description?: string;
  /** The number of steps that the client expects; informational. */
  readonly steps_total?: number;
  /** No new steps begin after this time. */
  readonly deadline_at_ms?: number;
  /** No new steps begin once its answers and their prompts have used this many tokens. */
  readonly budget_tokens?: number;
}

/** The terms in a request. They apply only if none were agreed on before. */
export interface NamedTerms extends Omit<TaskTerms, 'description' | 'deadline_at_ms'> {
  /** Counted from the first request that names it. */
  readonly deadline_ms?: number;
}

/**
 * The terms of tasks: those of the first request, until the owner replaces them. Every method rejects if the store does
 * not answer.
 */
export class AgreedTerms {
  readonly #notes: Notes;
  readonly #time: Time;
  readonly #ttl_ms: number;

  constructor({ store, time, configuration }: Pick<RunContext, 'store' | 'time' | 'configuration'>) {
    this.#notes = store.notes;
    this.#time = time;
    this.#ttl_ms = configuration.checkpoint.ttl_s * 1000;
  }

  async of(task: OwnedTask): Promise<TaskTerms> {
    const noted = await this.#notes.get(task.owner, termsNote(task));
    return noted === undefined ? {} : termsIn(noted);
  }

  /** The terms in force for a request that names these. */
  async agreed(task: OwnedTask, named: NamedTerms): Promise<TaskTerms> {
    const { deadline_ms, ...rest } = named;
    const own: TaskTerms = {
      ...rest,
      ...(deadline_ms !== undefined && { deadline_at_ms: this.#time.wall() + deadline_ms }),
    };
    const { owner } = task;
    return termsIn(await this.#notes.claim(owner, termsNote(task), JSON.stringify(own), this.#ttl_ms));
  }

  /** Replaces all earlier terms. */
  put(task: OwnedTask, terms: TaskTerms): Promise<void> {
    return this.#notes.put(task.owner, termsNote(task), JSON.stringify(terms), this.#ttl_ms);
  }

  /** Keeps them for at least this long from now. */
  extend(task: OwnedTask, ttl_ms: number): Promise<void> {
    return this.#notes.extend(task.owner, termsNote(task), ttl_ms);
  }

  async forget(task: OwnedTask): Promise<void> {
    await this.#notes.consume(task.owner, termsNote(task));
  }
}

/** A malformed note counts as absent. */
function termsIn(noted: string): TaskTerms {
  const terms = parsedJson(noted);
  return isObject(terms) ? terms : {};
}

const termsNote = ({ task }: OwnedTask): NoteKey => ({ kind: 'task_terms', name: task });
