import type { ServerResponse } from 'node:http';
import type { EventSourceMessage } from 'eventsource-parser';
import { remember } from '../lib/bounded-map.ts';
import {
  type FeedSnapshot,
  type FeedUpdate,
  STATUS_VERSION,
  type StatusDocument,
  type TaskSummary,
} from '../status/snapshot.ts';
import { feedMessage, VIEWERS_MAX } from '../status/status-feed.ts';
import type { ViewerFeed } from '../status/status-routes.ts';
import { TASKS_MAX } from '../status/task-board.ts';
import { readEvents } from './admin-socket.ts';
import { mergedRuns, mergedTask, mergedTasks, sharedKey } from './merged-documents.ts';
import type { WorkerProcess } from './worker-process.ts';

/** A viewer with this much unsent data is dropped. */
const BEHIND_BYTES_MAX = 8 * 2 ** 20;

type FeedWorker = Pick<WorkerProcess, 'id' | 'admin_socket'>;

interface MergedFeedParts {
  workers(): readonly FeedWorker[];
  merged(documents: readonly StatusDocument[]): StatusDocument;
}

/**
 * Sends viewers the events of all workers. Each viewer has its own feed from each worker, which begins with a merged
 * snapshot and then gets every worker's updates. A viewer that needs another snapshot is dropped and reconnects.
 */
export class MergedFeed implements ViewerFeed {
  readonly #parts: MergedFeedParts;
  readonly #viewers = new Set<MergedViewer>();

  constructor(parts: MergedFeedParts) {
    this.#parts = parts;
  }

  get isFull(): boolean {
    return this.#viewers.size >= VIEWERS_MAX;
  }

  async join(response: ServerResponse): Promise<void> {
    const viewer = new MergedViewer(response, this.#parts);
    this.#viewers.add(viewer);
    response.once('close', () => {
      this.#viewers.delete(viewer);
      viewer.end();
    });
  }

  /** The workers have changed, so every viewer must start again. */
  restart(): void {
    for (const viewer of this.#viewers) viewer.drop();
  }

  close(): void {
    this.restart();
  }
}

class MergedViewer {
  readonly #response: ServerResponse;
  readonly #merged: MergedFeedParts['merged'];
  readonly #count: number;
  readonly #stops: readonly (() => void)[];
  readonly #snapshots = new Map<number, FeedSnapshot>();
  /** Each worker's latest status. */
  readonly #statuses = new Map<number, StatusDocument>();
  /** Each worker's latest view of a task, by task and worker. */
  readonly #tasks = new Map<string, Map<number, TaskSummary>>();
  /** Updates that arrived before the first snapshot was complete. */
  #early: (() => void)[] = [];
  #isWhole = false;

  constructor(response: ServerResponse, { workers, merged }: MergedFeedParts) {
    this.#response = response;
    this.#merged = merged;
    const all = workers();
    this.#count = all.length;
    this.#stops = all.map(({ id, admin_socket }) =>
      readEvents(admin_socket, {
        onEvent: (message) => this.#receive(id, message),
        onEnd: () => this.drop(),
      }),
    );
    if (all.length === 0) this.drop();
  }

  /** The viewer may reconnect. */
  drop(): void {
    this.#response.destroy();
  }

  end(): void {
    for (const stop of this.#stops) stop();
  }

  #receive(worker: number, { event, data }: EventSourceMessage): void {
    if (event === 'snapshot') {
      if (this.#snapshots.has(worker)) this.drop();
      else this.#begin(worker, JSON.parse(data) as FeedSnapshot);
    } else if (event === 'update') {
      const update = JSON.parse(data) as FeedUpdate;
      if (this.#isWhole) this.#send('update', this.#shared(worker, update));
      else this.#early.push(() => this.#send('update', this.#shared(worker, update)));
    }
  }

  #begin(worker: number, snapshot: FeedSnapshot): void {
    this.#snapshots.set(worker, snapshot);
    this.#statuses.set(worker, snapshot.status);
    for (const task of snapshot.tasks.tasks) this.#note(worker, task);
    if (this.#snapshots.size < this.#count) return;
    this.#isWhole = true;
    const status = this.#merged([...this.#statuses.values()]);
    const { now_ms } = status;
    const runs = Array.from(this.#snapshots, ([id, { runs: document }]) => ({ worker: id, document }));
    const tasks = Array.from(this.#snapshots.values(), (each) => each.tasks);
    this.#send('snapshot', {
      version: STATUS_VERSION,
      status,
      runs: { version: STATUS_VERSION, ...mergedRuns(runs, now_ms) },
      tasks: { version: STATUS_VERSION, ...mergedTasks(tasks, now_ms) },
    });
    for (const send of this.#early) send();
    this.#early = [];
  }

  #shared(worker: number, update: FeedUpdate): FeedUpdate {
    const withKey = <Item extends { readonly key: number }>(item: Item): Item => ({
      ...item,
      key: sharedKey(worker, item.key),
    });
    const { now_ms, status, changed, tasks, progress, entries } = update;
    if (status) this.#statuses.set(worker, status);
    return {
      now_ms,
      ...(status && { status: this.#merged([...this.#statuses.values()]) }),
      ...(changed && { changed: changed.map(withKey) }),
      ...(tasks && { tasks: tasks.map((task) => this.#note(worker, task)) }),
      ...(progress && { progress: progress.map(withKey) }),
      ...(entries && { entries: entries.map(withKey) }),
    };
  }

  /** Records a worker's view of the task and returns the merged view. */
  #note(worker: number, task: TaskSummary): TaskSummary {
    const seen = this.#tasks.get(task.task) ?? new Map<number, TaskSummary>();
    remember(this.#tasks, task.task, seen.set(worker, task), TASKS_MAX);
    return mergedTask([...seen.values()]);
  }

  #send(event: 'snapshot' | 'update', data: FeedSnapshot | FeedUpdate): void {
    if (this.#response.writableLength > BEHIND_BYTES_MAX) this.drop();
    else this.#response.write(feedMessage(event, data));
  }
}
