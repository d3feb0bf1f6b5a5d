import { answerOf } from '../resume/stored-runs.ts';
import type { KnownCall } from '../tasks/call-ledger.ts';
import type { NumberedName } from '../tasks/numbered-names.ts';
import { isEnded, type TaskState } from '../tasks/task-states.ts';
import type { ApiContext } from './api-context.ts';
import { NumberedWatch, type Observed } from './numbered-watch.ts';
import { type ObservedStep, observeStep } from './step-events.ts';
import { type FoundTask, taskDocument } from './task-documents.ts';
import { nothingSeen, type TaskPosition, tokenOf } from './task-position.ts';

export type TaskEventName = 'task' | 'step' | 'call';

/** Resolves once the client accepts more or has disconnected. `at`: the position after this event. */
export type TellEvent = (name: TaskEventName, document: object, at: TaskPosition) => Promise<void>;

/** Finds news about a task in what all replicas have stored. */
export class TaskWatch {
  readonly #context: ApiContext;
  readonly #tell: TellEvent;
  readonly #steps: NumberedWatch<ObservedStep>;
  readonly #calls: NumberedWatch<Observed>;
  #found: FoundTask;
  #token: string;
  /** The task's document may have changed. */
  #isStale = true;

  /** `position`: of the client's last event; ignored if it belongs to an earlier task with this name. */
  constructor(
    found: FoundTask,
    position: TaskPosition | undefined,
    tell: TellEvent,
    signal: AbortSignal,
    context: ApiContext,
  ) {
    const { tasks } = context;
    const { era, owner } = found;
    const { token, steps, calls } = position?.era === era ? position : nothingSeen(era);
    this.#context = context;
    this.#tell = tell;
    this.#found = found;
    this.#token = token;
    this.#steps = new NumberedWatch(
      steps,
      {
        names: (first, last) => answerOf(tasks.steps(found, first, last), context),
        observe: (step, before) => observeStep(owner, step, before, context),
      },
      signal,
    );
    this.#calls = new NumberedWatch(
      calls,
      {
        names: (first, last) => answerOf(tasks.calls(found, first, last), context),
        observe: (call) => this.#observeCall(call),
      },
      signal,
    );
  }

  /**
   * Reports what is new. `over`: the task and its runs have ended, or the task was deleted. Throws `store_unavailable`;
   * the call can be repeated then.
   */
  async look(): Promise<'goes_on' | 'over'> {
    const { tasks, taskRules } = this.#context;
    const { record, state: before } = this.#found;
    const state = await answerOf(taskRules.states.of(this.#found), this.#context);
    if (await this.#isPurged(state)) return this.#tellPurged();
    const counts = await answerOf(tasks.counts(this.#found, record), this.#context);
    this.#found = { ...this.#found, era: state.era, state, record: { ...record, ...counts } };
    if (isOther(state, before)) this.#isStale = true;
    if (this.#isStale) await this.#tellTask();
    const isNews = await this.#steps.look(counts.steps, (step) => this.#tell('step', step, this.#position));
    if (isNews) this.#isStale = true;
    await this.#calls.look(counts.calls, (call) => this.#tell('call', call, this.#position));
    return isEnded(state) && !isNews && !this.#steps.isUnderWay ? 'over' : 'goes_on';
  }

  get #position(): TaskPosition {
    return {
      era: this.#found.era,
      token: this.#token,
      steps: this.#steps.position,
      calls: this.#calls.position,
    };
  }

  async #tellTask(): Promise<void> {
    const document = await taskDocument(this.#found, this.#context);
    this.#isStale = false;
    const token = tokenOf([document.status, document.status_since, document.reason, document.diverged]);
    if (token === this.#token) return;
    this.#token = token;
    await this.#tell('task', document, this.#position);
  }

  async #isPurged({ era }: TaskState): Promise<boolean> {
    if (this.#found.era !== '') return era !== this.#found.era;
    // The store was unavailable at its first request, so the task has no era to compare yet.
    const record = await answerOf(this.#context.tasks.noted(this.#found), this.#context);
    return record === undefined;
  }

  async #tellPurged(): Promise<'over'> {
    const { task: id } = this.#found;
    await this.#tell('task', { id, object: 'holdfast.task', purged: true }, this.#position);
    return 'over';
  }

  async #observeCall({ name: key }: NumberedName): Promise<Observed> {
    const { ledger } = this.#context;
    const known = await answerOf(ledger.known({ ...this.#found, key }), this.#context);
    return {
      token: known ? tokenOf([known.state, known.claims]) : '',
      document: callDocument(key, known?.state),
      isFinal: known?.state === 'done',
      isUnderWay: false,
    };
  }
}

const isOther = (one: TaskState, other: TaskState): boolean =>
  one.status !== other.status || one.since_ms !== other.since_ms || one.reason !== other.reason;

/** A tool call, without its result. */
const callDocument = (key: string, state: KnownCall['state'] | undefined): object => ({
  object: 'holdfast.call',
  key,
  state,
});
