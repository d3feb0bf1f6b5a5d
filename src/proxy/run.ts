import type { Logger } from 'pino';
import type { CheckpointScheduler } from '../checkpoint/checkpoint-scheduler.ts';
import type { Lease, Owner, RunId, Store, StoredRun } from '../checkpoint/store.ts';
import type { Configuration, UpstreamConfiguration } from '../config/configuration.ts';
import type { Metrics } from '../metrics.ts';
import type { Bar } from '../plans/decide.ts';
import type { Time } from '../time.ts';
import type { Refusal } from './attempt.ts';
import type { RunCompression } from './compression/run-compression.ts';
import type { CapabilityMemory } from './dialects/capability-memory.ts';
import type { RunObserver } from './run-observer.ts';
import type { TargetHealth } from './targets/target-health.ts';
import type { Transport } from './transport.ts';
import type { Wire, WireRequest } from './wires/wire.ts';

/** Where a run is sent: one upstream, and the model name to ask it for when it differs from the client's. */
export interface Target {
  readonly name: string;
  readonly upstream: UpstreamConfiguration;
  readonly model?: string;
  /** How much the model takes, where that was declared. */
  readonly context_tokens?: number;
}

/** A target as a run asks it. */
export interface RunTarget extends Target {
  /** Request headers to send upstream: hop-by-hop, `host`, `content-length` and `holdfast-*` removed, credential in place. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Shared by all runs; absent where there is no other target to ask. */
  readonly health?: TargetHealth;
}

/** What the client asked to see besides the standard wire: the `Holdfast-Events` request header. */
export type EventsMode = 'none' | 'chunks' | 'comments';

/** One assistant turn to be delivered to one client. */
export interface Run {
  readonly id: RunId;
  readonly owner: Owner;
  readonly wire: Wire;
  /** The preferred one; of a run that was begun elsewhere, the one that it was begun with. */
  readonly target: Target;
  /** All of its route in order of preference, where there are several. */
  readonly targets?: readonly RunTarget[];
  /** What is done about a conversation that is too long for all targets; nothing, without it. */
  readonly compression?: RunCompression;
  /** The body as it came; attempt 1 sends exactly this. */
  readonly body: string;
  /** Tells the request from others; see `requestDigest`. */
  readonly digest?: string;
  /** The same body, parsed and checked. */
  readonly request: WireRequest;
  /** Those of {@link target}. */
  readonly headers: RunTarget['headers'];
  readonly events: EventsMode;
  /** `Holdfast-Resume: 1`: the body is stored, events carry their ids, and the run outlives its client for a while. */
  readonly resumable: boolean;
  /** The client did not ask for a stream: it has nothing of the answer before it has all. */
  readonly unstreamed?: true;
  /** `Holdfast-Thread`. */
  readonly thread?: string;
  /** Aborts when nobody waits for the answer any more, or with {@link HAND_OVER} as its reason. */
  readonly signal: AbortSignal;
}

/** The reason to abort a run with when its replica shuts down: what was delivered is stored, another one may go on. */
export const HAND_OVER = Symbol('hand over');

/** A run that another replica began, as the store has it, under a lease of ours. */
export interface Resumption {
  readonly lease: Lease;
  /** The whole run, read from 0. */
  readonly stored: StoredRun;
  /** Payloads of the events the client has beyond `stored.seq`, in order, the first one directly after it. */
  readonly tail: readonly string[];
  /** Why the run gets no further attempt, if it gets none. */
  readonly barred?: Bar;
}

/** The client's side of a run. Frames are whole SSE events or comments, never parts of one. */
export interface Client {
  /** True once response headers were sent; from then on there is no other status. */
  readonly opened: boolean;
  /** True once something was sent, or kept for a client that is sent all of it at once: then a failure is told as an event. */
  readonly begun: boolean;
  /** Sends status 200 and the event-stream headers together with the next write. */
  open(headers: Readonly<Record<string, string>>): void;
  /** False when the client's buffer is full: await {@link drained} before writing more. */
  write(frames: string): boolean;
  /** Resolves when the client has taken what was written, or has gone. */
  drained(): Promise<void>;
  /** Sends the last frames and the end of the response together. */
  end(frames: string): void;
  /** Answers with a plain response instead of a stream; only before {@link open}. */
  reject(
    status: number,
    headers: Readonly<Record<string, string | string[]>>,
    body: string | Uint8Array,
  ): void;
  /** Closes the connection without an end, so that the client cannot take what it has for the whole answer. */
  destroy(): void;
  /** Set where the client did not ask for a stream. */
  readonly unstreamed?: Unstreamed;
  /** Added to what is logged of the run when its client has been served. */
  logFields?: Readonly<Record<string, string>>;
}

/** How a client that did not ask for a stream is answered by a target that gives none. */
export interface Unstreamed {
  /** With the whole answer that the target gave in its place, as it came. */
  answer(target: Target, answer: Refusal): void;
  /** By the target, which is asked as the client has asked. */
  passOn(target: Target): void;
}

/** Everything a run needs from its process. */
export interface RunContext {
  readonly configuration: Configuration;
  readonly transport: Transport;
  readonly store: Store;
  readonly scheduler: CheckpointScheduler;
  readonly capabilities: CapabilityMemory;
  readonly metrics: Metrics;
  readonly observer: RunObserver;
  readonly log: Logger;
  readonly time: Time;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/**
 * How a run ended here; the `outcome` label of `holdfast_runs_total`. `superseded`: another replica took it over.
 * `handed_over`: this one shut down and let it go. `replayed`: all of it was in the store.
 */
export type Outcome =
  | 'complete'
  | 'recovered'
  | 'salvaged'
  | 'failed'
  | 'rejected'
  | 'cancelled'
  | 'superseded'
  | 'handed_over'
  | 'replayed';
