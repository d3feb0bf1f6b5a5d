import { apiError } from '../lib/errors.ts';
import { VERSION } from '../lib/version.ts';
import {
  type RunDetail,
  type RunsDocument,
  STATUS_VERSION,
  type StatusDocument,
  type TaskDetail,
  type TasksDocument,
} from '../status/snapshot.ts';
import type { StatusSource } from '../status/status-routes.ts';
import { readDocument } from './admin-socket.ts';
import {
  latestStay,
  mergedRuns,
  mergedStatus,
  mergedTaskDetail,
  mergedTasks,
  type Told,
} from './merged-documents.ts';
import { MergedFeed } from './merged-feed.ts';
import type { WorkerProcess } from './worker-process.ts';

export interface MergedStatusParts {
  /** Workers that serve or drain. */
  workers(): readonly Pick<WorkerProcess, 'id' | 'admin_socket'>[];
  draining(): boolean;
  readonly started_at_ms: number;
}

/** The supervisor's status page: the workers' data, merged as if from one process. */
export class MergedStatus implements StatusSource {
  readonly #parts: MergedStatusParts;
  readonly feed: MergedFeed;

  constructor(parts: MergedStatusParts) {
    this.#parts = parts;
    this.feed = new MergedFeed({
      workers: () => parts.workers(),
      merged: (documents) => this.#merged(documents),
    });
  }

  async brief(): Promise<object> {
    const { active_requests, store, status, uptime_s } = await this.status();
    return {
      name: 'holdfast',
      version: VERSION,
      uptime_s,
      status,
      active_requests,
      store: store.name,
      workers: this.#parts.workers().length,
    };
  }

  async status(): Promise<StatusDocument> {
    return this.#merged((await this.#told<StatusDocument>('/status')).map(({ document }) => document));
  }

  async runs(): Promise<RunsDocument> {
    return { version: STATUS_VERSION, ...mergedRuns(await this.#told('/runs'), Date.now()) };
  }

  async run(id: string): Promise<RunDetail | undefined> {
    return latestStay(await this.#told(`/runs/${encodeURIComponent(id)}`));
  }

  async tasks(): Promise<TasksDocument> {
    const told = await this.#told<TasksDocument>('/tasks');
    return {
      version: STATUS_VERSION,
      ...mergedTasks(
        told.map(({ document }) => document),
        Date.now(),
      ),
    };
  }

  async task(id: string): Promise<TaskDetail | undefined> {
    return mergedTaskDetail(await this.#told(`/tasks/${encodeURIComponent(id)}`));
  }

  #merged([first, ...others]: readonly StatusDocument[]): StatusDocument {
    const { draining, started_at_ms } = this.#parts;
    if (!first) throw apiError('no_worker');
    return mergedStatus([first, ...others], {
      status: draining() ? 'draining' : 'serving',
      now_ms: Date.now(),
      started_at_ms,
      uptime_s: Math.round(process.uptime()),
    });
  }

  /** The documents of the workers that have one. Throws `no_worker` if no worker has answered. */
  async #told<Document>(path: string): Promise<readonly Told<Document>[]> {
    const answers = await Promise.all(
      this.#parts.workers().map(async ({ id, admin_socket }) => {
        const answer = await readDocument(admin_socket, path).catch(() => undefined);
        return answer && { ...answer, worker: id };
      }),
    );
    const given = answers.filter((answer) => answer !== undefined);
    if (given.length === 0) throw apiError('no_worker');
    return given
      .filter(({ status }) => status === 200)
      .map(({ worker, document }) => ({ worker, document: document as Document }));
  }
}
