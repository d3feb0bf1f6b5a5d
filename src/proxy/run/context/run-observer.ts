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
 * Observes runs as this replica delivers them, for traces and the status page. Called at attempts,
 * interruptions and seams, never per event. Its arguments never quote a prompt, an answer or a key, except for
 * {@link LiveAnswer.text}.
 */
export interface RunObserver {
  /** A run begins here, or is taken over from another replica. `undefined`: the run is not observed. */
  begin(run: ObservedRun): RunObservation | undefined;
  /** The step of a task was answered from the journal: no run begins for it. */
  replayed?(replay: ObservedReplay): void;
  /** The step of a task has ended without a whole answer: its replica was lost, and no client came back for it. */
  salvaged?(salvage: ObservedSalvage): void;
}

/** One run under the eyes of an observer. None of these may throw or wait. */
export interface RunObservation {
  /** Added to every line that is logged of the run. */
  readonly logFields?: Readonly<Record<string, string>> | undefined;
  /** Called once, after all observers have begun: what they add to the log. */
  identified?(logFields: Readonly<Record<string, string>>): void;
  /** An attempt is made. Returns headers to be sent with its request, in place of those of the client. */
  attempt(attempt: ObservedAttempt): Readonly<Record<string, string>> | undefined;
  /** The first content that the attempt under way adds to the answer. */
  answering(): void;
  /** Also of the attempt of another replica, from which the run was taken over: it was never begun here. */
  attemptEnded(end: ObservedAttemptEnd): void;
  /** What is done about an interruption. */
  planned(plan: ObservedPlan): void;
  /** New content has come after an interruption. */
  recovered(recovery: ObservedRecovery): void;
  /** Called once, and last. */
  ended(end: ObservedEnd): void;
}

export interface ObservedRun {
  readonly run: RunId;
  readonly wire: WireName;
  /** As the client names it: of any length, and as many as clients come up with. */
  readonly model: string;
  readonly upstream: string;
  /** The client asked for a stream. */
  readonly streamed: boolean;
  readonly resumable: boolean;
  /** Milliseconds since 1970: when the run began, on whatever replica. */
  readonly created_at_ms: number;
  /** Set where another replica has begun it. */
  readonly taken_over?: { readonly epoch: number; readonly after_event: number };
  /** Set where it answers a numbered step of a task. */
  readonly step?: ObservedStep;
  /** As its client names it. */
  readonly conversation?: string;
  /** W3C trace context of the client's request, unchecked. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** For as long as the run lasts. */
  readonly answer: LiveAnswer;
}

/** The names of a task and of its parent are their owner's, as that of a thread is: shown only where content is. */
export interface ObservedStep extends StepOfTask {
  readonly owner: Owner;
}

export interface ObservedReplay {
  readonly step: ObservedStep;
  /** What it would have cost to ask again: what it took the first time. */
  readonly tokens: number;
}

export interface ObservedSalvage {
  readonly run: RunId;
  readonly step: ObservedStep;
  /** As in the `end` of the run. */
  readonly cause?: string;
}

/** The answer so far, at the time of reading. */
interface LiveAnswer {
  /** UTF-16 units of text, reasoning and arguments. */
  readonly characters: number;
  /** Tool calls begun and not cancelled. */
  readonly tool_calls: number;
  /** Content: shown only where the configuration asks for it. */
  readonly text: string;
}

/** The target and the mode of an attempt. */
export interface ObservedAttempt extends AttemptSegment {
  /** The model that is asked for. */
  readonly asked_model: string;
}

export interface ObservedAttemptEnd {
  /** Of the run, where it is whole. */
  readonly outcome: 'complete' | 'interrupted';
  /** UTF-16 units that the attempt added to the answer. */
  readonly added: number;
  /** What was found at the seam; absent where there was none. */
  readonly seam?: string;
  readonly interruption?: ObservedInterruption;
  /** What the provider has reported. */
  readonly usage?: Usage;
  /** What came between the chunks of the attempt, where that is measured. */
  readonly chunk_gaps?: ChunkGaps;
  /** What the provider calls the answer, where it is known. */
  readonly answer_id?: string;
}

export interface ObservedPlan {
  readonly plan: Plan['kind'];
  /** Of giving up. */
  readonly why?: GiveUp;
  readonly failure?: ObservedFailure;
  /** Until the next attempt is made. */
  readonly wait_ms: number;
}

/** What a run that is given up has failed with. */
export interface ObservedFailure {
  /** As in the `end` of the run. */
  readonly cause: Cause | Bar;
  /** That of the provider, where it has answered with one. */
  readonly status?: number;
  /** Upstream requests made for the run. */
  readonly attempts: number;
}

export interface ObservedRecovery {
  readonly plan: 'R1' | 'R3' | 'R4';
  readonly mode: AttemptSegment['mode'];
  /** Silence that the client felt, in milliseconds. */
  readonly gap_ms: number;
}

export interface ObservedEnd {
  readonly outcome: Outcome;
  /** The finish reason that the client got, if it got one. */
  readonly finish?: string;
}

/** Observes no run. */
export const NO_OBSERVER: RunObserver = { begin: () => undefined };

/** All of them observe every run; if several return headers to send, the last one wins. */
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

/** Several observations of one run as one. */
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

/** A run with its observation, if it has one. */
interface ObservedRelay {
  /** Undefined without observers. */
  readonly watch: RunObservation | undefined;
  /** That of the process; what is logged in it can be joined to what the watch makes of the run. */
  readonly context: RunContext;
  /** Shows what is said, from now on. */
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
