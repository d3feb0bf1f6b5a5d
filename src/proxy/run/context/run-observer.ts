import type { StepOfTask, WireName } from '../../../checkpoint/journal.ts';
import type { Owner, RunId } from '../../../checkpoint/store.ts';
import type { Cause, ObservedInterruption } from '../../../interrupts/interruption.ts';
import type { Bar, GiveUp, Plan } from '../../../plans/decide.ts';
import type { AttemptSegment, Usage } from '../../../plans/delta.ts';
import type { Outcome } from '../../../plans/outcome.ts';
import type { Transcript } from '../../../plans/transcript.ts';
import type { ChunkGaps } from './chunk-gaps.ts';
import type { Resumption, Run } from './run.ts';
import type { RunContext } from './run-context.ts';

/**
 * Observes runs on this replica, for traces and the status page. Called at attempts, interruptions and seams, never per
 * event. Arguments never quote a prompt, an answer or a key, except for {@link LiveAnswer.text}.
 */
export interface RunObserver {
  /** A run begins on this replica, or is taken over from another. `undefined`: don't observe it. */
  begin(run: ObservedRun): RunObservation | undefined;
  /** A task's step was answered from the journal, without a new run. */
  replayed?(replay: ObservedReplay): void;
  /** A task's step ended without a whole answer: its replica was lost, and no client returned for it. */
  salvaged?(salvage: ObservedSalvage): void;
}

/** The observation of one run. Methods must neither throw nor block. */
export interface RunObservation {
  /** Added to each of the run's log entries. */
  readonly logFields?: Readonly<Record<string, string>> | undefined;
  /** Called once after all observers have begun, with their combined log fields. */
  identified?(logFields: Readonly<Record<string, string>>): void;
  /** An attempt begins. Returns headers for its request, which replace the client's. */
  attempt(attempt: ObservedAttempt): Readonly<Record<string, string>> | undefined;
  /** The current attempt adds its first content to the answer. */
  answering(): void;
  /**
   * Also called for the attempt of another replica from which the run was taken over; it had no `attempt` call here.
   */
  attemptEnded(end: ObservedAttemptEnd): void;
  /** A plan was chosen after an interruption. */
  planned(plan: ObservedPlan): void;
  /** New content has arrived after an interruption. */
  recovered(recovery: ObservedRecovery): void;
  /** Called once, last. */
  ended(end: ObservedEnd): void;
}

export interface ObservedRun {
  readonly run: RunId;
  readonly wire: WireName;
  /** As the client names it: of unbounded length and variety. */
  readonly model: string;
  readonly upstream: string;
  /** The client asked for a stream. */
  readonly streamed: boolean;
  readonly resumable: boolean;
  /** When the run began on any replica, in milliseconds since 1970. */
  readonly created_at_ms: number;
  /** Set if another replica began it. */
  readonly taken_over?: { readonly epoch: number; readonly after_event: number };
  /** Set if it answers a numbered step of a task. */
  readonly step?: ObservedStep;
  /** The client's name for it. */
  readonly conversation?: string;
  /** W3C trace context of the client's request, unchecked. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** Valid for the whole run. */
  readonly answer: LiveAnswer;
}

/**
 * The names of a task and its parent are their owner's data, like a thread's: show them only where content may be
 * shown.
 */
export interface ObservedStep extends StepOfTask {
  readonly owner: Owner;
}

export interface ObservedReplay {
  readonly step: ObservedStep;
  /** Tokens saved: what the step cost originally. */
  readonly tokens: number;
}

export interface ObservedSalvage {
  readonly run: RunId;
  readonly step: ObservedStep;
  /** As in the `end` of the run. */
  readonly cause?: string;
}

/** The answer so far; evaluated on each read. */
interface LiveAnswer {
  /** UTF-16 units of text, reasoning and arguments. */
  readonly characters: number;
  /** Tool calls that began and were not cancelled. */
  readonly tool_calls: number;
  /** Content: shown only if the configuration allows it. */
  readonly text: string;
}

/** The target and the mode of an attempt. */
export interface ObservedAttempt extends AttemptSegment {
  /** The requested model. */
  readonly asked_model: string;
}

export interface ObservedAttemptEnd {
  /** `complete`: the run is complete. */
  readonly outcome: 'complete' | 'interrupted';
  /** UTF-16 units that the attempt added to the answer. */
  readonly added: number;
  /** The kind of seam; absent without one. */
  readonly seam?: string;
  readonly interruption?: ObservedInterruption;
  /** The provider's report. */
  readonly usage?: Usage;
  /** Gaps between the attempt's chunks, if measured. */
  readonly chunk_gaps?: ChunkGaps;
  /** The provider's id for the answer, if known. */
  readonly answer_id?: string;
}

export interface ObservedPlan {
  readonly plan: Plan['kind'];
  /** Why the run is given up. */
  readonly why?: GiveUp;
  readonly failure?: ObservedFailure;
  /** Time until the next attempt. */
  readonly wait_ms: number;
}

/** The failure of a run that is given up. */
export interface ObservedFailure {
  /** As in the `end` of the run. */
  readonly cause: Cause | Bar;
  /** The provider's status, if it answered with one. */
  readonly status?: number;
  /** Upstream requests made for the run. */
  readonly attempts: number;
}

export interface ObservedRecovery {
  readonly plan: 'R1' | 'R3' | 'R4';
  readonly mode: AttemptSegment['mode'];
  /** How long the client received no content, in milliseconds. */
  readonly gap_ms: number;
}

export interface ObservedEnd {
  readonly outcome: Outcome;
  /** The finish reason sent to the client, if any. */
  readonly finish?: string;
}

/** Observes no run. */
export const NO_OBSERVER: RunObserver = { begin: () => undefined };

/** Combines observers. If several return the same header, the last one wins. */
export function observers(all: readonly RunObserver[]): RunObserver {
  const [first, second] = all;
  if (!second) return first ?? NO_OBSERVER;
  return {
    begin(run) {
      const watches = all.flatMap((observer) => observer.begin(run) ?? []);
      return watches.length > 1 ? watchedBy(watches) : watches[0];
    },
    replayed(replay) {
      for (const observer of all) observer.replayed?.(replay);
    },
    salvaged(salvage) {
      for (const observer of all) observer.salvaged?.(salvage);
    },
  };
}

/** Combines several observations of one run. */
function watchedBy(watches: readonly RunObservation[]): RunObservation {
  const fields = watches.map(({ logFields }) => logFields).filter((each) => each !== undefined);
  const logFields = fields.length > 0 ? Object.assign({}, ...fields) : undefined;
  if (logFields) for (const watch of watches) watch.identified?.(logFields);
  const each =
    <Told extends unknown[]>(name: 'answering' | 'attemptEnded' | 'planned' | 'recovered' | 'ended') =>
    (...told: Told): void => {
      for (const watch of watches) (watch[name] as (...told: Told) => void)(...told);
    };
  return {
    logFields,
    attempt: (attempt) => Object.assign({}, ...watches.map((watch) => watch.attempt(attempt))),
    answering: each('answering'),
    attemptEnded: each('attemptEnded'),
    planned: each('planned'),
    recovered: each('recovered'),
    ended: each('ended'),
  };
}

/** A run's context and its observation, if any. */
interface ObservedRelay {
  /** Undefined without observers. */
  readonly watch: RunObservation | undefined;
  /** The process's context, with a logger that adds the observation's fields. */
  readonly context: RunContext;
  /** Makes this transcript the live answer. */
  show(transcript: Transcript): void;
}

export function beginObservation(run: Run, context: RunContext, resumption?: Resumption): ObservedRelay {
  let said: Transcript | undefined;
  const answer: LiveAnswer = {
    get characters() {
      return said?.size ?? 0;
    },
    get tool_calls() {
      return said?.toolCalls.filter(({ state }) => state !== 'cancelled').length ?? 0;
    },
    get text() {
      return said?.text ?? '';
    },
  };
  const watch = context.observer.begin(observed(run, answer, context, resumption));
  const fields = watch?.logFields;
  return {
    watch,
    context: fields ? { ...context, log: context.log.child(fields) } : context,
    show: (transcript) => {
      said = transcript;
    },
  };
}

function observed(run: Run, answer: LiveAnswer, { time }: RunContext, resumption?: Resumption): ObservedRun {
  const { lease, stored } = resumption ?? {};
  const { traceparent, tracestate } = run.target.headers;
  return {
    run: run.id,
    wire: run.wire.name,
    model: run.request.model,
    upstream: run.target.name,
    streamed: run.unstreamed !== true,
    resumable: run.resumable,
    created_at_ms: stored?.records[0]?.header?.created_at_ms ?? time.wall(),
    ...(run.step && { step: { ...run.step, owner: run.owner } }),
    ...(lease && stored && { taken_over: { epoch: lease.epoch, after_event: stored.seq } }),
    ...(run.conversation !== undefined && { conversation: run.conversation }),
    ...(typeof traceparent === 'string' && { traceparent }),
    ...(typeof tracestate === 'string' && { tracestate }),
    answer,
  };
}
