import { randomBytes } from 'node:crypto';
import type { Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { NumberedList } from './numbered-names.ts';
import { ShrinkingLists } from './shrinking-lists.ts';
import type { TaskEra } from './task-records.ts';
import { isEnded, type OwnedTask, type TaskStates } from './task-states.ts';

/** Interval at which a replica looks for tasks that ended on others, and retries failed deletions. */
const SWEEP_MS = 60_000;
/** Maximum number of pending deletions. Beyond it, the oldest tasks keep the regular retention. */
const DUE_MAX = 10_000;
const READ_AT_ONCE = 100;
/** How long a replica has the exclusive right to delete a task. */
const CLAIM_MS = 600_000;
const CLOSE_WAIT_MAX_MS = 2000;
const REPLICA_BYTES = 9;

/** An ended task, and how long it is kept. */
interface DueTask extends TaskEra {
  readonly until_ms: number;
}

interface EndedTasksOptions {
  readonly context: Pick<RunContext, 'configuration' | 'store' | 'time' | 'random' | 'log'>;
  readonly states: TaskStates;
  /** Owner of the notes that replicas share. */
  readonly replicas: Owner;
  /** Deletes a task and everything that belongs to it. */
  readonly forget: (task: OwnedTask) => Promise<void>;
}

/**
 * Ended tasks with a shorter retention than usual. All replicas know them, and any one of them deletes a task when its
 * time has come.
 */
export class EndedTasks {
  readonly #options: EndedTasksOptions;
  readonly #notes: Notes;
  readonly #lists: ShrinkingLists;
  readonly #list: NumberedList;
  readonly #replica = randomBytes(REPLICA_BYTES).toString('base64url');
  /** By number, with the time of the next attempt. */
  readonly #due = new Map<number, { readonly task: DueTask; readonly at_ms: number }>();
  readonly #closed = new AbortController();
  #rest = new AbortController();
  #sweeping: Promise<void> = Promise.resolve();
  /** The last number in the list that this replica has read. */
  #read = 0;

  constructor(options: EndedTasksOptions) {
    const { context, replicas } = options;
    this.#options = options;
    this.#notes = context.store.notes;
    this.#list = { owner: replicas, name: '', era: '' };
    this.#lists = new ShrinkingLists({
      notes: context.store.notes,
      kind: 'due_task',
      turn: 'due_number',
      last: 'last_due',
      // By then the rest of the task has expired as well.
      ttl_ms: context.configuration.checkpoint.ttl_s * 1000,
    });
  }

  /** Schedules the deletion of an ended task. Idempotent. Rejects if the store does not answer. */
  async add({ owner, task, era }: TaskEra, until_ms: number): Promise<void> {
    const due: DueTask = { owner, task, era, until_ms };
    const number = await this.#lists.add(this.#list, JSON.stringify(due));
    if (number === undefined) return;
    this.#expect(number, due);
    this.#rest.abort();
  }

  start(): void {
    this.#sweeping = this.#sweep();
  }

  /** Resolves once pending work has ended, or after two seconds. */
  async close(): Promise<void> {
    this.#closed.abort();
    await inTime(this.#sweeping, this.#options.context.time, CLOSE_WAIT_MAX_MS);
  }

  async #sweep(): Promise<void> {
    const { random } = this.#options.context;
    // Spreads the load of replicas that start together.
    await this.#sleep(SWEEP_MS * random());
    while (!this.#closed.signal.aborted) {
      await this.#attempt(() => this.#look());
      await this.#forgetDue();
      await this.#sleep(this.#nextIn_ms());
    }
  }

  /** Ends early if a task is added. */
  async #sleep(delay_ms: number): Promise<void> {
    this.#rest = new AbortController();
    const signal = AbortSignal.any([this.#closed.signal, this.#rest.signal]);
    await sleep(this.#options.context.time, delay_ms, signal);
  }

  #nextIn_ms(): number {
    const now_ms = this.#options.context.time.wall();
    const waits_ms = Array.from(this.#due.values(), ({ at_ms }) => at_ms - now_ms);
    return Math.max(
      0,
      waits_ms.reduce((least, wait_ms) => Math.min(least, wait_ms), SWEEP_MS),
    );
  }

  /** Reads tasks that ended on other replicas. */
  async #look(): Promise<void> {
    const last = await this.#lists.last(this.#list);
    this.#read = Math.max(this.#read, last - DUE_MAX);
    while (this.#read < last) {
      const end = Math.min(this.#read + READ_AT_ONCE, last);
      for (const { number, name } of await this.#lists.names(this.#list, this.#read + 1, end)) {
        const due = dueIn(name);
        if (due && !this.#due.has(number)) this.#expect(number, due);
      }
      this.#read = end;
    }
  }

  #expect(number: number, task: DueTask): void {
    remember(this.#due, number, { task, at_ms: task.until_ms }, DUE_MAX);
  }

  async #forgetDue(): Promise<void> {
    const { time } = this.#options.context;
    for (const [number, { task, at_ms }] of [...this.#due]) {
      if (this.#closed.signal.aborted) return;
      if (at_ms > time.wall()) continue;
      this.#due.set(number, { task, at_ms: time.wall() + SWEEP_MS });
      await this.#attempt(() => this.#forget(number, task));
    }
  }

  async #forget(number: number, due: DueTask): Promise<void> {
    if (await this.#lists.has(this.#list, number)) {
      const { replicas, states, forget } = this.#options;
      const claim = { kind: 'due_claim', name: String(number) } as const;
      if ((await this.#notes.claim(replicas, claim, this.#replica, CLAIM_MS)) !== this.#replica) return;
      const state = await states.of(due);
      // Another task may have reused the name.
      if (state.era === due.era && isEnded(state)) await forget(due);
      await this.#lists.remove(this.#list, { number, name: JSON.stringify(due) });
    }
    this.#due.delete(number);
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.context.log.warn(
        { err: error },
        'ended tasks are kept for longer: the store does not answer',
      );
    }
  }
}

/** A malformed name counts as absent. */
function dueIn(name: string): DueTask | undefined {
  const due = parsedJson(name);
  const isDue = isObject(due) && [due.owner, due.task, due.era].every((part) => typeof part === 'string');
  return isDue && Number.isSafeInteger(due.until_ms) ? (due as unknown as DueTask) : undefined;
}
