import type { StepOfTask } from '../../../checkpoint/journal.ts';
import type { Lease, Owner, RunId, StoredRun } from '../../../checkpoint/store.ts';
import type { MemoryShare } from '../../../lib/memory-budget.ts';
import type { Bar, Policy } from '../../../plans/decide.ts';
import type { HeldCalls } from '../../../plans/tool-call.ts';
import type { ModelCompression, ModelHedge } from '../../upstream/route-table.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { EventsMode, Wire, WireRequest } from '../../wires/common/wire.ts';

/** One assistant turn to be delivered to one client. */
export interface Run {
  readonly id: RunId;
  readonly owner: Owner;
  readonly wire: Wire;
  /** The preferred one; of a run that was begun elsewhere, the one that it was begun with. */
  readonly target: RunTarget;
  /** All of its route in order of preference, where there are several. */
  readonly targets?: readonly RunTarget[];
  /** What is done about a conversation that is too long for all targets; nothing, without it. */
  readonly compression?: RunCompression;
  /** When another of the targets is asked as well; never, without it. */
  readonly hedge?: ModelHedge | undefined;
  /** The body as it came; attempt 1 sends exactly this. */
  readonly body: string;
  /** Tells the request from others; see `requestDigest`. */
  readonly digest?: string;
  /** The same body, parsed and checked. */
  readonly request: WireRequest;
  readonly events: EventsMode;
  /** `Holdfast-Resume: 1`: the body is stored, events carry their ids, and the run outlives its client for a while. */
  readonly resumable: boolean;
  /** The client did not ask for a stream: it has nothing of the answer before it has all. */
  readonly unstreamed?: true;
  /** See {@link Policy.failsWhenFull}. */
  readonly failsWhenFull?: true;
  /** What its conversation is called: `Holdfast-Thread`, or what that is derived from. */
  readonly thread?: string;
  /** The same for traces, where its request names a conversation. */
  readonly conversation?: string;
  /** Which step of its task it answers, where it is one that has a number. */
  readonly step?: StepOfTask;
  /** `Holdfast-Deadline-Ms`: counted from the beginning of the run. */
  readonly deadline_ms?: number;
  /** Where the answer is counted; nowhere, without it. */
  readonly memory?: MemoryShare;
  /** Aborts when no client waits for the answer any more, or with {@link HAND_OVER} as its reason. */
  readonly signal: AbortSignal;
}

/** How the conversation of a run is put in fewer words if it has to be. */
export interface RunCompression extends Omit<ModelCompression, 'target'> {
  /** The target that makes the summary. */
  readonly target: RunTarget & { readonly model: string };
}

/** The reason to abort a run with when its client has gone, and is not known to want nothing more of it. */
export const LEFT = Symbol('left');

/** The reason to abort a run with when its replica shuts down: what was delivered is stored, another one may continue. */
export const HAND_OVER = Symbol('hand over');

/** A run that another replica began, as the store has it, under a lease of ours. */
export interface Resumption {
  readonly lease: Lease;
  /** The whole run, read from 0. */
  readonly stored: StoredRun;
  /** Payloads of the events the client has beyond `stored.seq`, in order, the first one directly after it. */
  readonly tail: readonly string[];
  /** What replicas before this one held, as the last of them has noted it. */
  readonly held?: HeldCalls | undefined;
  /** Why the run gets no further attempt, if it gets none. */
  readonly barred?: Bar;
}
