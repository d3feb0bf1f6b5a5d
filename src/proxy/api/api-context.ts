import type { StoredRun } from '../../checkpoint/store.ts';
import type { MemoryBudget } from '../../lib/memory-budget.ts';
import { inTime, type Time } from '../../lib/time.ts';
import type { Outcome } from '../../plans/outcome.ts';
import type { Client } from '../downstream/client.ts';
import type { Reader } from '../resume/reader.ts';
import type { RunLookup } from '../resume/run-lookup.ts';
import type { AnswerIds } from '../run/answer-ids.ts';
import type { Relay, RunContext } from '../run/context/run-context.ts';
import type { NoticeBoard } from '../run/notices/notice-board.ts';
import type { RunRegistry } from '../run/run-registry.ts';
import type { CallLedger } from '../tasks/call-ledger.ts';
import type { EndedTasks } from '../tasks/ended-tasks.ts';
import type { TaskDivergences } from '../tasks/task-divergence.ts';
import type { TaskObserver } from '../tasks/task-observer.ts';
import type { TaskRecords } from '../tasks/task-records.ts';
import type { TaskRules, TaskSteps } from '../tasks/task-steps.ts';
import type { RouteTable } from '../upstream/route-table.ts';
import type { StreamRefusals } from '../upstream/stream-refusals.ts';
import type { HealthRegistry } from '../upstream/target-health.ts';
import type { PassThrough } from './passthrough.ts';
import type { SignedUrls } from './signed-urls.ts';

/** Delivers a stored run from a cursor; see follow.ts. */
export type Follow = (
  reader: Reader,
  stored: StoredRun,
  client: Client,
  context: RunContext,
) => Promise<Outcome>;

/** Everything the routes need. */
export interface ApiContext extends RunContext {
  readonly relay: Relay;
  readonly follow: Follow;
  readonly passThrough: PassThrough;
  readonly models: RouteTable;
  readonly healths: HealthRegistry;
  /** Models that must be asked without a stream. */
  readonly streamRefusals: StreamRefusals;
  /** HMAC key for the owner of a run. */
  readonly secret: string;
  readonly urls: SignedUrls;
  /** All work in progress, for draining. */
  readonly work: ActiveWork;
  readonly registry: RunRegistry;
  /** Admits request bodies, runs and readers. */
  readonly memory: MemoryBudget;
  readonly lookup: RunLookup;
  readonly steps: TaskSteps;
  readonly tasks: TaskRecords;
  readonly taskRules: TaskRules;
  readonly endedTasks: EndedTasks;
  readonly divergences: TaskDivergences;
  readonly taskObserver: TaskObserver | undefined;
  readonly ledger: CallLedger;
  readonly notices: NoticeBoard;
  readonly answerIds: AnswerIds;
  /** Aborts when this replica stops taking new requests. */
  readonly refusing: AbortSignal;
}

/** Work that must end before the process exits. */
export class ActiveWork {
  readonly #promises = new Set<Promise<unknown>>();

  get count(): number {
    return this.#promises.size;
  }

  track<Result>(work: Promise<Result>): Promise<Result> {
    this.#promises.add(work);
    return work.finally(() => this.#promises.delete(work));
  }

  /** Resolves once nothing is in progress, including work begun meanwhile. */
  async ended(): Promise<void> {
    while (this.#promises.size > 0) await Promise.allSettled(this.#promises);
  }

  /** Resolves once the current work has ended, or after `limit_ms`. */
  async settled(time: Time, limit_ms: number): Promise<void> {
    await inTime(Promise.allSettled(this.#promises), time, limit_ms);
  }
}
