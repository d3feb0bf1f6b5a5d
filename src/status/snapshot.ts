import type { WireName } from '../checkpoint/journal.ts';
import type { RunId, Store } from '../checkpoint/store.ts';
import type { Evidence, Interruption } from '../interrupts/interruption.ts';
import type { TargetState } from '../metrics/metrics.ts';
import type { GiveUp, Plan } from '../plans/decide.ts';
import type { Segment } from '../plans/delta.ts';
import type { Outcome } from '../plans/outcome.ts';

/**
 * What the admin port shows of runs, as JSON. Fields and kinds may be added; any change that could break a reader
 * raises this number. Times ending in `_at_ms`, and `now_ms`, are milliseconds since 1970 by the clock of the replica.
 */
export const STATUS_VERSION = 1;

/** `GET /status`. */
export interface StatusDocument {
  readonly version: typeof STATUS_VERSION;
  readonly name: 'holdfast';
  /** Of the program. */
  readonly release: string;
  readonly status: 'serving' | 'draining';
  readonly now_ms: number;
  readonly started_at_ms: number;
  readonly uptime_s: number;
  /** Requests under way on the API port, of any kind. */
  readonly active_requests: number;
  /** Whether `GET /runs/{id}` quotes the answer: `status_page.content` in the configuration. */
  readonly content: boolean;
  readonly runs: RunCounts;
  /** Since the process began; pairs that never occurred are left out. */
  readonly interruptions: readonly InterruptionCount[];
  readonly recovery_gaps: RecoveryGaps;
  readonly history: RunHistory;
  readonly store: StoreState;
  /** Those of the routes. `model` is `''` where the client's own is asked for. */
  readonly targets: readonly TargetStatus[];
  /** This replica and those that share its store, by name. */
  readonly fleet: readonly FleetMember[];
  readonly api: ApiHints;
  /** Templates with `{run_id}` and `{trace_id}`, where they are configured. */
  readonly links: { readonly trace_url?: string; readonly log_url?: string };
}

/** The last quarter of an hour in slots, the oldest first; the last one is under way. All have the same length. */
export interface RunHistory {
  readonly slot_ms: number;
  readonly begun: readonly number[];
  /** Attempts that ended early. */
  readonly interrupted: readonly number[];
  /** Runs that ended `recovered` or `salvaged`. */
  readonly rescued: readonly number[];
  readonly failed: readonly number[];
}

export interface TargetStatus extends TargetState, TargetCounts {
  /** No other target stands beside it: nothing is routed around it, whatever its state. */
  readonly alone: boolean;
}

/** What attempts of this replica have come to. */
export interface TargetCounts {
  readonly attempts: number;
  /** Attempts that were interrupted. */
  readonly errors: number;
  /** From the request to the first token of the last 100 attempts that answered. */
  readonly first_token?: { readonly p50_ms: number; readonly p95_ms: number };
  readonly last_failure?: {
    readonly at_ms: number;
    readonly cause: Interruption['cause'];
    readonly evidence: Evidence['kind'];
    /** The code, clock, status or the like; shortened. */
    readonly detail?: string;
    /** Of HTTP. */
    readonly status?: number;
  };
}

export interface FleetMember {
  readonly name: string;
  /** It is the replica that says so. */
  readonly self: boolean;
  /** `dead`: it has given no sign of life for longer than it should. `unknown`: the store does not answer. */
  readonly state: 'serving' | 'draining' | 'dead' | 'unknown';
  readonly release: string;
  readonly started_at_ms: number;
  /** Live runs, as of its last sign of life. Not of the dead. */
  readonly runs?: number;
}

/** How to reach the API of this replica. */
export interface ApiHints {
  /** Where it listens. A host of `0.0.0.0` or `[::]` stands for any address of the machine. */
  readonly url: string;
  /** A shell command that asks for a short answer. */
  readonly try: string;
  /** One that reads the run `{run_id}` from its first event. */
  readonly resume: string;
}

export interface RunCounts {
  readonly live: number;
  /** Of the live ones, those that were interrupted and have not said anything new since. */
  readonly recovering: number;
  /** Since the process began; outcomes that never occurred are left out. */
  readonly ended: Readonly<Partial<Record<Outcome, number>>>;
  /** Runs that began while too many others were being watched, and are in none of these numbers. */
  readonly unwatched: number;
}

export interface InterruptionCount {
  readonly upstream: string;
  readonly cause: Interruption['cause'];
  readonly count: number;
}

/** Silences that clients felt between the last delta before an interruption and the first after it. */
export interface RecoveryGaps {
  readonly count: number;
  readonly sum_ms: number;
  readonly max_ms: number;
  /** Each has those that are longer than the bucket before it allows; `le_ms` is null for the last one. */
  readonly buckets: readonly { readonly le_ms: number | null; readonly count: number }[];
}

export interface StoreState {
  readonly name: Store['name'];
  /** `unknown` until it was asked for the first time. */
  readonly state: 'ok' | 'failing' | 'unknown';
  /** Why it fails. */
  readonly reason?: string;
  /** Batches that it refused or failed to append since the process began. */
  readonly failed_appends: number;
}

/** Tells tasks apart, and does not say what they are called. */
export type TaskId = `task_${string}`;

/** `GET /runs`. */
export interface RunsDocument {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** Oldest first. */
  readonly live: readonly RunSummary[];
  /** The last ones that ended here, newest first. */
  readonly ended: readonly RunSummary[];
}

/**
 * `asking`: an attempt was made and has said nothing yet. `interrupted`: it has ended early, and what to do about it is
 * being decided. `waiting`: for the next attempt. `finishing`: the answer is whole, its client or the store is awaited.
 */
export type RunState = 'asking' | 'answering' | 'interrupted' | 'waiting' | 'finishing' | 'ended';

export interface RunSummary {
  /** Tells apart the stays of one run on this replica: it may leave and come back. Grows. */
  readonly key: number;
  readonly run: RunId;
  readonly wire: WireName;
  /** As the client names it, shortened, and without control characters. Hostile all the same. */
  readonly model: string;
  /** The upstream that is asked, or was asked last. */
  readonly upstream: string;
  /** Of the run, whichever replica made them; 0 before the first one. */
  readonly attempt: number;
  readonly state: RunState;
  /** When it came into this state. */
  readonly state_at_ms: number;
  /** Its states here, the oldest first, and when it came into each; of a long course the latest. */
  readonly course: readonly (readonly [state: RunState, at_ms: number])[];
  /** When the run began, on whatever replica. */
  readonly created_at_ms: number;
  readonly streamed: boolean;
  readonly resumable: boolean;
  /** Of a numbered step of a task: of which, and its number. */
  readonly task?: TaskId;
  readonly step?: number;
  /** Another replica has begun it. */
  readonly taken_over: boolean;
  /** UTF-16 units of text, reasoning and arguments so far. */
  readonly characters: number;
  readonly tool_calls: number;
  readonly interruptions: number;
  /** Interruptions after which the answer has continued. */
  readonly recoveries: number;
  /** Of the last interruption. */
  readonly cause?: Interruption['cause'];
  /** Made after it. */
  readonly plan?: Plan['kind'];
  /** Of the ended. */
  readonly outcome?: Outcome;
  readonly ended_at_ms?: number;
}

/** One stay of a run on this replica. */
export interface RunStay extends RunSummary {
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
  /** Entries of the middle that were left out of a long timeline. */
  readonly omitted: number;
}

/** `GET /runs/{id}`: of several stays of a run the latest. */
export interface RunDetail extends RunStay {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** Of the trace that Holdfast exports, or that the client is part of. */
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
      /** The model asked for, shortened. */
      readonly model: string;
      readonly compressed: boolean;
    }
  | { readonly kind: 'answering'; readonly attempt: number }
  | {
      readonly kind: 'interrupted';
      /** 0 for that of another replica, from which the run was taken over. */
      readonly attempt: number;
      readonly upstream: string;
      readonly cause: Interruption['cause'];
      readonly phase: Interruption['phase'];
      readonly evidence: Evidence['kind'];
      /** The code, clock, status or the like; shortened. */
      readonly detail?: string;
      /** Of HTTP. */
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
  /** `finish`: the finish reason that the client got. */
  | { readonly kind: 'ended'; readonly outcome: Outcome; readonly finish?: string }
);

/** `GET /tasks`. */
export interface TasksDocument {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** The last ones that had a step here, the last one first. */
  readonly tasks: readonly TaskSummary[];
}

/** `idle`: none of its steps is being answered here. `failed`: the same, and the last of them had no answer. */
export type TaskState = 'answering' | 'recovering' | 'idle' | 'failed';

/** A task as far as this replica has seen it. */
export interface TaskSummary {
  readonly task: TaskId;
  /** As its owner calls it, shortened. Only with `status_page.content`. */
  readonly name?: string;
  /** The task that it is a part of: one that has the same owner, and need not have had a step here. */
  readonly parent?: TaskId;
  /** Its name, where `name` is there. */
  readonly parent_name?: string;
  readonly state: TaskState;
  /** When its first step began here, or was replayed. */
  readonly began_at_ms: number;
  /** The same of its last one. */
  readonly step_at_ms: number;
  /** Since when no step is being answered. */
  readonly idle_since_ms?: number;
  readonly steps: number;
  /** Which ones: a bit set in base64, in which step 1 is the lowest bit of the first byte. */
  readonly step_numbers: string;
  /** Interruptions after which an answer was continued, or finished with what was settled. */
  readonly recoveries: number;
  /** Prompt and completion, as providers have reported them for attempts of this replica. */
  readonly tokens_paid: number;
  /** The same of answers that were replayed instead. */
  readonly tokens_saved: number;
}

/** `GET /tasks/{id}`. */
export interface TaskDetail extends TaskSummary {
  readonly version: typeof STATUS_VERSION;
  readonly now_ms: number;
  /** The last ones, by number. */
  readonly shown: readonly TaskStep[];
}

export interface TaskStep {
  readonly number: number;
  /** Of its run on this replica, oldest first; none where it was only replayed here. */
  readonly stays: readonly RunStay[];
  readonly replays: number;
  /** The last time. */
  readonly replayed_at_ms?: number;
}

/** Data of the event `snapshot` of `GET /runs/events`: the first one, and again wherever updates were left out. */
export interface FeedSnapshot {
  readonly version: typeof STATUS_VERSION;
  readonly status: StatusDocument;
  readonly runs: RunsDocument;
  readonly tasks: TasksDocument;
}

/** Data of the event `update`, at most one a second. What is empty is left out, but for `now_ms`. */
export interface FeedUpdate {
  readonly now_ms: number;
  /** Present where anything but the time has changed. */
  readonly status?: StatusDocument;
  /** Runs that began, came into another state or ended, oldest first. */
  readonly changed?: readonly RunSummary[];
  /** Tasks that had a step, or of whose runs anything was changed. */
  readonly tasks?: readonly TaskSummary[];
  /** Live runs of which nothing but these numbers has changed. */
  readonly progress?: readonly RunProgress[];
  /** What was added to the timelines, in order. */
  readonly entries?: readonly FeedEntry[];
}

export interface RunProgress {
  readonly key: number;
  readonly characters: number;
  readonly tool_calls: number;
}

export type FeedEntry = TimelineEntry & { readonly key: number; readonly run: RunId };
