import type { StepOfTask } from '../../../checkpoint/journal.ts';
import type { Lease, Owner, RunId, StoredRun } from '../../../checkpoint/store.ts';
import type { MemoryShare } from '../../../lib/memory-budget.ts';
import type { Bar, Policy } from '../../../plans/decide.ts';
import type { HeldCalls } from '../../../plans/tool-call.ts';
import type { ModelCompression, ModelHedge } from '../../upstream/route-table.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { EventsMode, Wire, WireRequest } from '../../wires/common/wire.ts';

/** One assistant turn for one client. */
export interface Run {
  readonly id: RunId;
  readonly owner: Owner;
  readonly wire: Wire;
  /** The preferred target; for a run that began on another replica, its original target. */
  readonly target: RunTarget;
  /** All targets of its route in order of preference, if there are several. */
  readonly targets?: readonly RunTarget[];
  /** How to compress a conversation that is too long for all targets; absent: don't. */
  readonly compression?: RunCompression;
  /** When to hedge with another target; absent: never. */
  readonly hedge?: ModelHedge | undefined;
  /** The request body as received. Attempt 1 sends exactly this. */
  readonly body: string;
  /** Identifies the request; see `requestDigest`. */
  readonly digest?: string;
  /** The same body, parsed and validated. */
  readonly request: WireRequest;
  readonly events: EventsMode;
  /** `Holdfast-Resume: 1`: the body is stored, events have ids, and the run outlives its client for a while. */
  readonly resumable: boolean;
  /** The client asked for no stream: it sees nothing before the answer is complete. */
  readonly unstreamed?: true;
  /** See {@link Policy.failsWhenFull}. */
  readonly failsWhenFull?: true;
  /** The conversation's name: `Holdfast-Thread`, or derived from the client's session. */
  readonly thread?: string;
  /** The conversation's name for traces, if the request contains one. */
  readonly conversation?: string;
  /** The step of a task that it answers, if numbered. */
  readonly step?: StepOfTask;
  /** `Holdfast-Deadline-Ms`: relative to the beginning of the run. */
  readonly deadline_ms?: number;
  /** Accounts for the memory of the answer; absent: no accounting. */
  readonly memory?: MemoryShare;
  /** Aborts when no client waits for the answer, or with reason {@link HAND_OVER}. */
  readonly signal: AbortSignal;
}

/** How to compress the run's conversation if necessary. */
export interface RunCompression extends Omit<ModelCompression, 'target'> {
  /** The target that makes the summary. */
  readonly target: RunTarget & { readonly model: string };
}

/** Abort reason: the client disconnected, but may still want the answer. */
export const LEFT = Symbol('left');

/** Abort reason: this replica shuts down. Delivered content is stored, and another replica may continue. */
export const HAND_OVER = Symbol('hand over');

/** A run from another replica, as stored, with the lease for it. */
export interface Resumption {
  readonly lease: Lease;
  /** The whole run, read from 0. */
  readonly stored: StoredRun;
  /** Payloads of the client's events beyond `stored.seq`, in order; the first directly follows it. */
  readonly tail: readonly string[];
  /** Calls held by earlier replicas, as the last one noted them. */
  readonly held?: HeldCalls | undefined;
  /** Why the run gets no further attempt, if so. */
  readonly barred?: Bar;
}
