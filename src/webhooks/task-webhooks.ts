import { createHash } from 'node:crypto';
import { ownerOfClient } from '../checkpoint/owner.ts';
import type { Owner, RunId } from '../checkpoint/store.ts';
import type { Configuration } from '../config/configuration.ts';
import type { WebhookEvent } from '../config/webhook-schema.ts';
import { remember } from '../lib/bounded-map.ts';
import type { ErrorCode } from '../lib/errors.ts';
import type { Time } from '../lib/time.ts';
import type { Exhaustion } from '../plans/budget.ts';
import type { GiveUp } from '../plans/decide.ts';
import type {
  ObservedEnd,
  ObservedFailure,
  ObservedPlan,
  ObservedRun,
  ObservedSalvage,
  ObservedStep,
  RunObservation,
  RunObserver,
} from '../proxy/run/context/run-observer.ts';
import type { TaskTerms } from '../proxy/tasks/agreed-terms.ts';
import type { TaskObserver, UnknownCall } from '../proxy/tasks/task-observer.ts';
import type { TaskEra } from '../proxy/tasks/task-records.ts';
import type { OwnedTask, TaskState } from '../proxy/tasks/task-states.ts';
import type { WebhookDelivery } from './webhook-delivery.ts';

/** How many sent events a replica remembers. */
const TOLD_MAX = 10_000;

const EVENT_OF_STATUS: Readonly<Record<TaskState['status'], WebhookEvent>> = {
  running: 'task.resumed',
  paused: 'task.paused',
  completed: 'task.completed',
  cancelled: 'task.cancelled',
};

/** Its type makes the compiler check that no value is missing. */
const EXHAUSTIONS: Readonly<Partial<Record<GiveUp, true>>> = {
  attempts: true,
  no_progress: true,
  repeated_failure: true,
  work: true,
  deadline: true,
  retry_after: true,
} satisfies Record<Exhaustion, true>;

/** A single event of a task. */
interface TaskEvent {
  readonly task: OwnedTask;
  readonly type: WebhookEvent;
  readonly at_ms: number;
  /** Distinguishes the event from others of its type and task, identically on all replicas. */
  readonly occurrence: readonly (string | number | undefined)[];
  readonly data: object;
}

/**
 * Creates webhook events from what replicas observe of tasks. Event ids are the same on every replica and each replica
 * sends an event once, so a receiver recognises duplicates by their id. Events never contain prompts or answers.
 */
export class TaskWebhooks implements RunObserver, TaskObserver {
  readonly #delivery: Pick<WebhookDelivery, 'send'>;
  readonly #time: Pick<Time, 'wall'>;
  readonly #clients: ReadonlyMap<Owner, string>;
  readonly #told = new Map<string, true>();

  constructor(
    delivery: Pick<WebhookDelivery, 'send'>,
    {
      configuration: { clients },
      secret,
      time,
    }: {
      readonly configuration: Pick<Configuration, 'clients'>;
      readonly secret: string;
      readonly time: Pick<Time, 'wall'>;
    },
  ) {
    this.#delivery = delivery;
    this.#time = time;
    this.#clients = new Map(clients.map(({ name }) => [ownerOfClient(secret, name), name]));
  }

  changed(task: OwnedTask, { status, since_ms = this.#time.wall(), reason, era }: TaskState): void {
    this.#tell({
      task,
      type: EVENT_OF_STATUS[status],
      at_ms: since_ms,
      occurrence: [era, since_ms],
      data: { reason: reason ?? null },
    });
  }

  refused(task: TaskEra, code: ErrorCode, { deadline_at_ms, budget_tokens }: TaskTerms): void {
    const { era } = task;
    if (code === 'task_deadline_passed' && deadline_at_ms !== undefined)
      this.#tell({
        task,
        type: 'task.deadline_passed',
        at_ms: deadline_at_ms,
        occurrence: [era, deadline_at_ms],
        data: { deadline_at: Math.floor(deadline_at_ms / 1000) },
      });
    if (code === 'task_budget_spent' && budget_tokens !== undefined)
      this.#tell({
        task,
        type: 'task.budget_spent',
        at_ms: this.#time.wall(),
        occurrence: [era, budget_tokens],
        data: { budget_tokens },
      });
  }

  callUnknown(call: UnknownCall): void {
    const { era, key, claim, claimed_at_ms } = call;
    this.#tell({
      task: call,
      type: 'task.call_unknown',
      at_ms: this.#time.wall(),
      occurrence: [era, key, claim, claimed_at_ms],
      data: { call: { key, claim, claimed_at: Math.floor(claimed_at_ms / 1000) } },
    });
  }

  begin({ run, step }: ObservedRun): RunObservation | undefined {
    return step && new StepWatch((failed) => this.#stepFailed(run, step, failed));
  }

  salvaged({ run, step, cause }: ObservedSalvage): void {
    this.#stepFailed(run, step, { ...(cause !== undefined && { cause }) });
  }

  #stepFailed(
    run: RunId,
    { owner, task, number, name }: ObservedStep,
    { cause, status, attempts, exhausted = false }: FailedStep,
  ): void {
    this.#tell({
      task: { owner, task },
      type: 'task.step_failed',
      at_ms: this.#time.wall(),
      occurrence: [run],
      data: {
        step: number,
        step_name: name ?? null,
        run,
        attempts: attempts ?? null,
        exhausted,
        error: { cause: cause ?? null, status: status ?? null },
      },
    });
  }

  #tell({ task: { owner, task }, type, at_ms, occurrence, data }: TaskEvent): void {
    const digest = createHash('sha256').update(JSON.stringify([owner, task, type, ...occurrence]));
    const id = `msg_${digest.digest('base64url')}`;
    if (this.#told.has(id)) return;
    remember(this.#told, id, true, TOLD_MAX);
    const body = JSON.stringify({
      type,
      timestamp: new Date(at_ms).toISOString(),
      data: { task, client: this.#clients.get(owner) ?? null, ...data },
    });
    this.#delivery.send({ id, type, body });
  }
}

interface FailedStep extends Partial<Omit<ObservedFailure, 'cause'>> {
  readonly cause?: string;
  readonly exhausted?: boolean;
}

/** Observes one run to its end, and whether it has a complete answer by then. */
class StepWatch implements RunObservation {
  readonly #onFailed: (failed: FailedStep) => void;
  #failed: FailedStep | undefined;

  constructor(onFailed: (failed: FailedStep) => void) {
    this.#onFailed = onFailed;
  }

  attempt(): undefined {}
  answering(): void {}
  attemptEnded(): void {}
  recovered(): void {}

  planned({ why, failure }: ObservedPlan): void {
    if (why !== undefined) this.#failed = { ...failure, exhausted: EXHAUSTIONS[why] ?? false };
  }

  ended({ outcome }: ObservedEnd): void {
    // A rejection that Holdfast didn't plan isn't a failure yet, because the same request follows without a stream.
    const hasFailed = outcome === 'failed' || (outcome === 'rejected' && this.#failed !== undefined);
    if (hasFailed) this.#onFailed(this.#failed ?? {});
  }
}
