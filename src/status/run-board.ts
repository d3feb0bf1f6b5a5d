import type { Time } from '../lib/time.ts';
import type { TargetLabels } from '../metrics/metrics.ts';
import type {
  ObservedEnd,
  ObservedReplay,
  ObservedRun,
  RunObserver,
} from '../proxy/run/context/run-observer.ts';
import { BoardHistory } from './board-history.ts';
import { type BoardEvents, BoardRun } from './board-run.ts';
import type { BoardTask } from './board-task.ts';
import {
  type FeedEntry,
  type FeedUpdate,
  type InterruptionCount,
  type RecoveryGaps,
  type RunCounts,
  type RunDetail,
  type RunProgress,
  type RunsDocument,
  STATUS_VERSION,
  type TimelineEntry,
} from './snapshot.ts';
import { TargetBoard } from './target-board.ts';
import { TaskBoard } from './task-board.ts';

/** Further runs aren't shown. A replica with more is better observed by its metrics. */
const LIVE_MAX = 10_000;
export const ENDED_MAX = 200;

interface RunBoardOptions {
  readonly time: Time;
  readonly content: boolean;
  /** The configured targets. */
  readonly targets?: Iterable<TargetLabels>;
}

/** This replica's runs: all live ones, the latest that ended, and the latest steps of tasks. */
export class RunBoard implements RunObserver {
  readonly #time: Time;
  readonly #content: boolean;
  readonly #live = new Map<number, BoardRun>();
  /** Oldest first. */
  readonly #ended: BoardRun[] = [];
  readonly #endings: Partial<Record<ObservedEnd['outcome'], number>> = {};
  /** Keyed by upstream and cause, both of which are closed sets. */
  readonly #interruptions = new Map<string, InterruptionCount>();
  readonly #gaps = new RecoveryGapCounts();
  readonly #events: BoardEvents;
  readonly tasks: TaskBoard;
  readonly history: BoardHistory;
  readonly targets: TargetBoard;
  #keys = 0;
  #unwatched = 0;
  /** Collects changes while there are viewers. */
  changes: BoardChanges | undefined;

  constructor({ time, content, targets = [] }: RunBoardOptions) {
    this.#time = time;
    this.#content = content;
    this.tasks = new TaskBoard({ time, content });
    this.history = new BoardHistory(time);
    this.targets = new TargetBoard(time, targets);
    this.#events = {
      changed: (run: BoardRun, entry: TimelineEntry) => this.changes?.add(run, entry),
      attempted: (upstream, model) => this.targets.begin(upstream, model),
      interrupted: (upstream, { cause }) => this.#count(upstream, cause),
      recovered: (gap_ms) => this.#gaps.add(gap_ms),
      ended: (run, outcome) => this.#end(run, outcome),
    };
  }

  begin(observed: ObservedRun): BoardRun | undefined {
    if (this.#live.size >= LIVE_MAX) {
      this.#unwatched++;
      return undefined;
    }
    const { step } = observed;
    const task = step && this.tasks.taskOf(step);
    const options = { key: ++this.#keys, time: this.#time, content: this.#content, task };
    const run = new BoardRun(observed, options, this.#events);
    this.#live.set(run.key, run);
    this.history.add('begun');
    if (step) task?.begin(step.number, run, this.#time.wall());
    return run;
  }

  replayed({ step, tokens }: ObservedReplay): void {
    const task = this.tasks.taskOf(step);
    task.replayed(step.number, tokens, this.#time.wall());
    this.changes?.addTask(task);
  }

  get live(): Iterable<BoardRun> {
    return this.#live.values();
  }

  get counts(): RunCounts {
    let recovering = 0;
    for (const run of this.live) if (run.isRecovering) recovering++;
    return {
      live: this.#live.size,
      recovering,
      ended: { ...this.#endings },
      unwatched: this.#unwatched,
    };
  }

  get interruptions(): readonly InterruptionCount[] {
    return [...this.#interruptions.values()];
  }

  get gaps(): RecoveryGaps {
    return this.#gaps.read();
  }

  runs(): RunsDocument {
    return {
      version: STATUS_VERSION,
      now_ms: this.#time.wall(),
      live: Array.from(this.live, (run) => run.summary()),
      ended: this.#ended.map((run) => run.summary()).reverse(),
    };
  }

  /** The latest stay of a run. */
  detail(id: string): RunDetail | undefined {
    let latest: BoardRun | undefined;
    for (const runs of [this.#ended, this.tasks.runs, this.live]) {
      for (const run of runs) if (run.run === id && run.key > (latest?.key ?? 0)) latest = run;
    }
    return latest?.detail();
  }

  #count(upstream: string, cause: InterruptionCount['cause']): void {
    const key = `${cause} ${upstream}`;
    const count = (this.#interruptions.get(key)?.count ?? 0) + 1;
    this.#interruptions.set(key, { upstream, cause, count });
    this.history.add('interrupted');
  }

  #end(run: BoardRun, outcome: ObservedEnd['outcome']): void {
    this.#live.delete(run.key);
    this.#ended.push(run);
    // Runs that are steps are remembered for longer, but without their text.
    if (this.#ended.length > ENDED_MAX) this.#ended.shift()?.forgetText();
    this.#endings[outcome] = (this.#endings[outcome] ?? 0) + 1;
    if (outcome === 'recovered' || outcome === 'salvaged') this.history.add('rescued');
    if (outcome === 'failed') this.history.add('failed');
  }
}

/** From an unnoticeable reconnect to a long wait for a provider. */
const LIMITS_MS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

/** How long clients waited for recoveries. */
class RecoveryGapCounts {
  readonly #counts: number[] = Array.from({ length: LIMITS_MS.length + 1 }, () => 0);
  #sum_ms = 0;
  #max_ms = 0;

  add(gap_ms: number): void {
    const index = LIMITS_MS.findIndex((limit_ms) => gap_ms <= limit_ms);
    const bucket = index === -1 ? LIMITS_MS.length : index;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum_ms += gap_ms;
    this.#max_ms = Math.max(this.#max_ms, gap_ms);
  }

  read(): RecoveryGaps {
    return {
      count: this.#counts.reduce((sum, count) => sum + count, 0),
      sum_ms: Math.round(this.#sum_ms),
      max_ms: Math.round(this.#max_ms),
      buckets: this.#counts.map((count, index) => ({ le_ms: LIMITS_MS[index] ?? null, count })),
    };
  }
}

/** Maximum number of changes between two updates; beyond it, a full snapshot is smaller. */
const CHANGES_MAX = 5000;

type Told = Pick<RunProgress, 'characters' | 'tool_calls'>;

/** The changes of a board since the last {@link collect}. */
export class BoardChanges {
  #runs = new Set<BoardRun>();
  #tasks = new Set<BoardTask>();
  #entries: FeedEntry[] = [];
  #told = new Map<number, Told>();
  #overflown: boolean = false;

  add(run: BoardRun, entry: TimelineEntry): void {
    if (this.#overflown) return;
    this.#runs.add(run);
    this.#entries.push({ ...entry, key: run.key, run: run.run });
    if (this.#entries.length > CHANGES_MAX) this.#overflown = true;
    if (run.task) this.addTask(run.task);
  }

  addTask(task: BoardTask): void {
    this.#tasks.add(task);
  }

  /**
   * Returns the collected changes, or undefined if there were too many. Clears them in either case and marks the live
   * runs' current lengths as reported.
   */
  collect(live: Iterable<BoardRun>): Omit<FeedUpdate, 'now_ms' | 'status'> | undefined {
    const [runs, entries, told, overflown] = [this.#runs, this.#entries, this.#told, this.#overflown];
    const tasks = this.#tasks;
    this.#runs = new Set();
    this.#tasks = new Set();
    this.#entries = [];
    this.#told = new Map();
    this.#overflown = false;

    const progress: RunProgress[] = [];
    for (const run of live) {
      const { key, characters, tool_calls } = run;
      const before = told.get(key);
      this.#told.set(key, { characters, tool_calls });
      const isSame = before?.characters === characters && before.tool_calls === tool_calls;
      if (!isSame && !runs.has(run)) progress.push({ key, characters, tool_calls });
    }
    if (overflown) return undefined;
    const changed = Array.from(runs, (run) => run.summary()).sort((one, other) => one.key - other.key);
    return {
      ...(changed.length > 0 && { changed }),
      ...(tasks.size > 0 && { tasks: Array.from(tasks, (task) => task.summary()) }),
      ...(progress.length > 0 && { progress }),
      ...(entries.length > 0 && { entries }),
    };
  }
}
