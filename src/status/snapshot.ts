import type { WireName } from '../checkpoint/journal.ts';
import type { RunId, Store } from '../checkpoint/store.ts';
import type { Evidence, Interruption } from '../interrupts/interruption.ts';
import type { TargetState } from '../metrics/metrics.ts';
import type { GiveUp, Plan } from '../plans/decide.ts';
import type { Segment } from '../plans/delta.ts';
import type { Outcome } from '../plans/outcome.ts';

/**
 * Version of the JSON that the admin port serves about runs. Fields and kinds may be added; any change that could break
 * a reader raises this number. Times ending in `_at_ms`, and `now_ms`, are milliseconds since 1970 by the replica's
 * clock.
 */
export const STATUS_VERSION = 1;

/** `GET /status`. */
export interface StatusDocument {
  readonly version: typeof STATUS_VERSION;
  readonly name: 'holdfast';
  /** Version of the program. */
  readonly release: string;
  readonly status: 'serving' | 'draining';
  readonly now_ms: number;
  readonly started_at_ms: number;
  readonly uptime_s: number;
  /** Active requests of any kind on the API port. */
  readonly active_requests: number;
  /** Whether `GET /runs/{id}` quotes the answer; set by `status_page.content`. */
  readonly content: boolean;
  readonly runs: RunCounts;
  /** Counts since the process began. Pairs that never occurred are omitted. */
  readonly interruptions: readonly InterruptionCount[];
  readonly recovery_gaps: RecoveryGaps;
  readonly history: RunHistory;
  readonly store: StoreState;
  /** The targets of the routes. `model` is `''` if the client's model is requested. */
  readonly targets: readonly TargetStatus[];
  /** This replica and those that share its store, sorted by name. */
  readonly fleet: readonly FleetMember[];
  readonly api: ApiHints;
  /** Templates with `{run_id}` and `{trace_id}`, if configured. */
  readonly links: { readonly trace_url?: string; readonly log_url?: string };
}

/** The last 15 minutes in slots of equal length, oldest first. The last slot is the current one. */
export interface RunHistory {
  readonly slot_ms: number;
  readonly begun: readonly number[];
  /** Attempts that ended early. */
  readonly interrupted: readonly number[];
  /** Runs that ended as `recovered` or `salvaged`. */
  readonly rescued: readonly number[];
  readonly failed: readonly number[];
}

export interface TargetStatus extends TargetState, TargetCounts {
  /** No other target can replace it, so it is never routed around, whatever its state. */
  readonly alone: boolean;
}

/** Results of this replica's attempts. */
export interface TargetCounts {
  readonly attempts: number;
  /** Interrupted attempts. */
  readonly errors: number;
  /** Time from the request to the first token, over the last 100 answered attempts. */
  readonly first_token?: { readonly p50_ms: number; readonly p95_ms: number };
  readonly last_failure?: {
    readonly at_ms: number;
    readonly cause: Interruption['cause'];
    readonly evidence: Evidence['kind'];
    /** Code, clock, status or similar; shortened. */
    readonly detail?: string;
    /** HTTP status. */
    readonly status?: number;
  };
}

export interface FleetMember {
  readonly name: string;
  /** True for the replica that reports this. */
  readonly self: boolean;
  /** `dead`: its signs of life have expired. `unknown`: the store doesn't answer. */
  readonly state: 'serving' | 'draining' | 'dead' | 'unknown';
  readonly release: string;
  readonly started_at_ms: number;
  /** Live runs at its last sign of life. Absent for dead replicas. */
  readonly runs?: number;
}

/** How to reach this replica's API. */
export interface ApiHints {
  /** The listening address. A host of `0.0.0.0` or `[::]` stands for any address of the machine. */
  readonly url: string;
  /** A shell command that requests a short answer. */
  readonly try: string;
  /** A shell command that reads the run `{run_id}` from its first event. */
  readonly resume: string;
}

export interface RunCounts {
  readonly live: number;
  /** Live runs that were interrupted and haven't continued yet. */
  readonly recovering: number;
  /** Counts since the process began. Outcomes that never occurred are omitted. */
  readonly ended: Readonly<Partial<Record<Outcome, number>>>;
  /** Runs that began while too many others were shown. They aren't included in the other counts. */
  readonly unwatched: number;
}

export interface InterruptionCount {
  readonly upstream: string;
  readonly cause: Interruption['cause'];
  readonly count: number;
}

/** Silences for clients from the last delta before an interruption to the first one after it. */
export interface RecoveryGaps {
  readonly count: number;
  readonly sum_ms: number;
  readonly max_ms: number;
  /** Not cumulative: each counts values above the previous bucket's bound. `le_ms` is null for the last one. */
  readonly buckets: readonly { readonly le_ms: number | null; readonly count: number }[];
}

export interface StoreState {
  readonly name: Store['name'];
  /** `unknown` until it is first checked. */
  readonly state: 'ok' | 'failing' | 'unknown';
  /** Why it fails. */
  readonly reason?: string;
  /** Appends that it refused or failed since the process began. */
  readonly failed_appends: number;
}

/** Identifies a task without revealing its name. */
export type TaskId = `task_${string}`;

/** `GET /runs`. */
export interface RunsDocument {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** Oldest first. */
  readonly live: readonly RunSummary[];
  /** The latest runs that ended here, newest first. */
  readonly ended: readonly RunSummary[];
}

/**
 * `asking`: an attempt was made and has produced nothing yet. `interrupted`: it ended early and the plan is being
 * decided. `waiting`: for the next attempt. `finishing`: the answer is complete, but its client or the store isn't
 * done.
 */
export type RunState = 'asking' | 'answering' | 'interrupted' | 'waiting' | 'finishing' | 'ended';

export interface RunSummary {
  /** Distinguishes the stays of a run on this replica, which it may leave and return to. Increasing. */
  readonly key: number;
  readonly run: RunId;
  readonly wire: WireName;
  /** The client's model name, shortened and without control characters. Still untrusted. */
  readonly model: string;
  /** The current or latest upstream. */
  readonly upstream: string;
  /** Number of the run's latest attempt on any replica; 0 before the first one. */
  readonly attempt: number;
  readonly state: RunState;
  /** When the run entered this state. */
  readonly state_at_ms: number;
  /** The run's states on this replica and when it entered each, oldest first; of a long course, the latest. */
  readonly course: readonly (readonly [state: RunState, at_ms: number])[];
  /** When the run began, on any replica. */
  readonly created_at_ms: number;
  readonly streamed: boolean;
  readonly resumable: boolean;
  /** Task and number, for a numbered step of a task. */
  readonly task?: TaskId;
  readonly step?: number;
  /** The run began on another replica. */
  readonly taken_over: boolean;
  /** UTF-16 units of text, reasoning and arguments so far. */
  readonly characters: number;
  readonly tool_calls: number;
  readonly interruptions: number;
  /** Interruptions after which the answer continued. */
  readonly recoveries: number;
  /** Cause of the last interruption. */
  readonly cause?: Interruption['cause'];
  /** The plan after the last interruption. */
  readonly plan?: Plan['kind'];
  /** Present once the run has ended. */
  readonly outcome?: Outcome;
  readonly ended_at_ms?: number;
}

/** One stay of a run on this replica. */
export interface RunStay extends RunSummary {
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
  /** Number of entries omitted from the middle of a long timeline. */
  readonly omitted: number;
}

/** `GET /runs/{id}`: the latest stay of a run. */
export interface RunDetail extends RunStay {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** The trace that Holdfast exports or that the client's request belongs to. */
  readonly trace_id?: string;
  /** The end of the text so far. Only with `status_page.content`. */
  readonly text?: string;
}

export type TimelineEntry = { readonly at_ms: number } & (
  | { readonly kind: 'taken_over'; readonly epoch: number; readonly after_event: number }
  | {
      readonly kind: 'attempt';
      readonly attempt: number;
      readonly upstream: string;
      readonly mode: Segment['mode'];
      /** The requested model, shortened. */
      readonly model: string;
      readonly compressed: boolean;
    }
  | { readonly kind: 'answering'; readonly attempt: number }
  | {
      readonly kind: 'interrupted';
      /** 0 for the attempt of another replica, from which the run was taken over. */
      readonly attempt: number;
      readonly upstream: string;
      readonly cause: Interruption['cause'];
      readonly phase: Interruption['phase'];
      readonly evidence: Evidence['kind'];
      /** Code, clock, status or similar; shortened. */
      readonly detail?: string;
      /** HTTP status. */
      readonly status?: number;
      /** UTF-16 units that the attempt added. */
      readonly added: number;
      readonly seam?: string;
    }
  | { readonly kind: 'whole'; readonly attempt: number; readonly added: number; readonly seam?: string }
  | {
      readonly kind: 'planned';
      readonly plan: Plan['kind'];
      readonly why?: GiveUp;
      readonly wait_ms: number;
    }
  | {
      readonly kind: 'recovered';
      readonly plan: 'R1' | 'R3' | 'R4';
      readonly mode: Segment['mode'];
      readonly gap_ms: number;
    }
  /** `finish`: the finish reason sent to the client. */
  | { readonly kind: 'ended'; readonly outcome: Outcome; readonly finish?: string }
);

/** `GET /tasks`. */
export interface TasksDocument {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** Tasks with steps on this replica, the one with the latest step first. */
  readonly tasks: readonly TaskSummary[];
}

/** `idle`: no step is being answered here. `failed`: idle, and the last step got no answer. */
export type TaskState = 'answering' | 'recovering' | 'idle' | 'failed';

/** A task as seen by this replica. */
export interface TaskSummary {
  readonly task: TaskId;
  /** The owner's name for it, shortened. Only with `status_page.content`. */
  readonly name?: string;
  /** The parent task. It has the same owner, but not necessarily steps on this replica. */
  readonly parent?: TaskId;
  /** The parent's name; present under the same condition as `name`. */
  readonly parent_name?: string;
  readonly state: TaskState;
  /** When its first step here began or was replayed. */
  readonly began_at_ms: number;
  /** When its latest step here began or was replayed. */
  readonly step_at_ms: number;
  /** When the last step ended; absent while one is being answered. */
  readonly idle_since_ms?: number;
  readonly steps: number;
  /** The steps as a bit set in base64, with step 1 as the lowest bit of the first byte. */
  readonly step_numbers: string;
  /** Interruptions after which an answer continued, or finished with its settled parts. */
  readonly recoveries: number;
  /** Prompt and completion tokens that providers reported for this replica's attempts. */
  readonly tokens_paid: number;
  /** Tokens of answers that were replayed instead. */
  readonly tokens_saved: number;
}

/** `GET /tasks/{id}`. */
export interface TaskDetail extends TaskSummary {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** The latest steps, by number. */
  readonly shown: readonly TaskStep[];
}

export interface TaskStep {
  readonly number: number;
  /** Stays of its run on this replica, oldest first; empty if it was only replayed here. */
  readonly stays: readonly RunStay[];
  readonly replays: number;
  /** Time of the last replay. */
  readonly replayed_at_ms?: number;
}

/** Data of the `snapshot` event of `GET /runs/events`: sent first, and again if updates were skipped. */
export interface FeedSnapshot {
  readonly version: typeof STATUS_VERSION;
  readonly status: StatusDocument;
  readonly runs: RunsDocument;
  readonly tasks: TasksDocument;
}

/** Data of the `update` event, at most one per second. Empty fields are omitted, except for `now_ms`. */
export interface FeedUpdate {
  readonly now_ms: number;
  /** Present if anything except the time has changed. */
  readonly status?: StatusDocument;
  /** Runs that began, changed state or ended, oldest first. */
  readonly changed?: readonly RunSummary[];
  /** Tasks that had a step, or whose runs have changed. */
  readonly tasks?: readonly TaskSummary[];
  /** Live runs of which only these numbers have changed. */
  readonly progress?: readonly RunProgress[];
  /** New timeline entries, in order. */
  readonly entries?: readonly FeedEntry[];
}

export interface RunProgress {
  readonly key: number;
  readonly characters: number;
  readonly tool_calls: number;
}

export type FeedEntry = TimelineEntry & { readonly key: number; readonly run: RunId };
