import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import type { Time } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { OwnedTask } from './task-states.ts';

/** What a task is, and how far it may go. */
export interface TaskTerms {
  /** For people. */
  readonly description?: string;
  /** How many steps its client expects it to take. Nothing depends on it. */
  readonly steps_total?: number;
  /** From then on it has no new steps. */
  readonly deadline_at_ms?: number;
  /** It has no new steps once its answers, with their prompts, have taken so many. */
  readonly budget_tokens?: number;
}

/** The terms that a request names. They hold where none were agreed on before. */
export interface NamedTerms extends Omit<TaskTerms, 'description' | 'deadline_at_ms'> {
  /** From the first request that names it on. */
  readonly deadline_ms?: number;
}

/**
 * The terms of tasks: those that its first request has named, until its owner puts others in their place. Every method rejects
 * where the store does not answer.
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

  /** The terms that hold for a request that names these. */
  async agreed(task: OwnedTask, named: NamedTerms): Promise<TaskTerms> {
    const { deadline_ms, ...rest } = named;
    const own: TaskTerms = {
      ...rest,
      ...(deadline_ms !== undefined && { deadline_at_ms: this.#time.wall() + deadline_ms }),
    };
    const { owner } = task;
    return termsIn(await this.#notes.claim(owner, termsNote(task), JSON.stringify(own), this.#ttl_ms));
  }

  /** Puts these in the place of all that were agreed on before. */
  put(task: OwnedTask, terms: TaskTerms): Promise<void> {
    return this.#notes.put(task.owner, termsNote(task), JSON.stringify(terms), this.#ttl_ms);
  }

  /** They hold for at least so long from now on. */
  extend(task: OwnedTask, ttl_ms: number): Promise<void> {
    return this.#notes.extend(task.owner, termsNote(task), ttl_ms);
  }

  async forget(task: OwnedTask): Promise<void> {
    await this.#notes.consume(task.owner, termsNote(task));
  }
}

/** A malformed note counts as none. */
function termsIn(noted: string): TaskTerms {
  const terms = parsedJson(noted);
  return isObject(terms) ? terms : {};
}

const termsNote = ({ task }: OwnedTask): NoteKey => ({ kind: 'task_terms', name: task });
