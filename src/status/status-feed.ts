import type { ServerResponse } from 'node:http';
import type { Time } from '../lib/time.ts';
import { BoardChanges, type RunBoard } from './run-board.ts';
import { type FeedSnapshot, type FeedUpdate, STATUS_VERSION, type StatusDocument } from './snapshot.ts';
import type { StatusReport } from './status-report.ts';

const UPDATE_EVERY_MS = 1000;
export const VIEWERS_MAX = 20;
/** A viewer that reads nothing for this long is dropped. */
const BEHIND_MS_MAX = 10_000;

interface StatusFeedParts {
  readonly board: RunBoard;
  readonly report: StatusReport;
  readonly time: Time;
}

/**
 * Sends viewers updates at most once a second. Every message is created once for all viewers, and a slow viewer gets a
 * snapshot instead of what it missed. Without viewers, nothing is collected and no timer runs.
 */
export class StatusFeed {
  readonly #parts: StatusFeedParts;
  readonly #viewers = new Set<Viewer>();
  #cancelTimer: (() => void) | undefined;
  /** The status last sent, without its times. */
  #told = '';

  constructor(parts: StatusFeedParts) {
    this.#parts = parts;
  }

  get isFull(): boolean {
    return this.#viewers.size >= VIEWERS_MAX;
  }

  /** Sends a snapshot at once. The headers of `response` must have been sent. */
  async join(response: ServerResponse): Promise<void> {
    const viewer = new Viewer(response);
    this.#viewers.add(viewer);
    response.once('close', () => this.#leave(viewer));
    this.#parts.board.changes ??= new BoardChanges();
    const status = await this.#parts.report.read();
    if (!this.#viewers.has(viewer)) return;
    this.#sendSnapshot(viewer, this.#snapshot(status));
    this.#schedule();
  }

  close(): void {
    for (const viewer of this.#viewers) viewer.drop();
  }

  #leave(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#parts.board.changes = undefined;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #schedule(): void {
    if (this.#viewers.size === 0) return;
    this.#cancelTimer ??= this.#parts.time.after(UPDATE_EVERY_MS, () => void this.#tick());
  }

  async #tick(): Promise<void> {
    const { board, report, time } = this.#parts;
    const status = await report.read();
    this.#cancelTimer = undefined;
    const changes = board.changes?.collect(board.live);
    const update = changes && feedMessage('update', this.#update(status, changes));
    let snapshot: string | undefined;
    for (const viewer of this.#viewers) {
      const behind_ms = viewer.behind_ms(time.now());
      if (behind_ms >= BEHIND_MS_MAX) viewer.drop();
      else if (viewer.isBehind) viewer.isStale = true;
      else if (update !== undefined && !viewer.isStale) viewer.send(update);
      else {
        snapshot ??= this.#snapshot(status);
        this.#sendSnapshot(viewer, snapshot);
      }
    }
    this.#schedule();
  }

  #sendSnapshot(viewer: Viewer, snapshot: string): void {
    viewer.isStale = false;
    viewer.send(snapshot);
  }

  #snapshot(status: StatusDocument): string {
    const { board } = this.#parts;
    const snapshot: FeedSnapshot = {
      version: STATUS_VERSION,
      status,
      runs: board.runs(),
      tasks: board.tasks.read(),
    };
    return feedMessage('snapshot', snapshot);
  }

  #update(status: StatusDocument, changes: Omit<FeedUpdate, 'now_ms' | 'status'>): FeedUpdate {
    const { now_ms, uptime_s: _, ...lasting } = status;
    const text = JSON.stringify(lasting);
    const isNew = text !== this.#told;
    this.#told = text;
    return { now_ms, ...(isNew && { status }), ...changes };
  }
}

/** A viewer of the event stream. At most one unread message is buffered for it. */
class Viewer {
  readonly #response: ServerResponse;
  #behind_since_ms: number | undefined;
  /** The viewer has missed messages and needs a snapshot before the next one. */
  isStale: boolean = true;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** How long the last message has waited to be read. */
  behind_ms(now_ms: number): number {
    if (this.#response.writableLength === 0) this.#behind_since_ms = undefined;
    else this.#behind_since_ms ??= now_ms;
    return this.#behind_since_ms === undefined ? 0 : now_ms - this.#behind_since_ms;
  }

  get isBehind(): boolean {
    return this.#behind_since_ms !== undefined;
  }

  send(message: string): void {
    this.#response.write(message);
  }

  /** The viewer may reconnect, starting with a snapshot. */
  drop(): void {
    this.#response.destroy();
  }
}

/** A server-sent event. JSON contains no line breaks. */
export const feedMessage = (event: 'snapshot' | 'update', data: object): string =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
