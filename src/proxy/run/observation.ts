import type { Transcript } from '../../plans/transcript.ts';
import type { Resumption, Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import type { LiveAnswer, ObservedRun, RunObservation } from './context/run-observer.ts';

/** A run as it is delivered under the eyes of whoever watches it. */
export interface ObservedRelay {
  /** Undefined where nobody does. */
  readonly watch: RunObservation | undefined;
  /** That of the process; what is logged in it can be joined to what the watch makes of the run. */
  readonly context: RunContext;
  /** Shows what is said, from now on. */
  show(transcript: Transcript): void;
}

class WatchedAnswer implements LiveAnswer {
  transcript: Transcript | undefined;

  get characters(): number {
    return this.transcript?.size ?? 0;
  }

  get tool_calls(): number {
    return this.transcript?.toolCalls.filter(({ state }) => state !== 'cancelled').length ?? 0;
  }

  get text(): string {
    return this.transcript?.text ?? '';
  }
}

export function beginObservation(run: Run, context: RunContext, resumption?: Resumption): ObservedRelay {
  const answer = new WatchedAnswer();
  const watch = context.observer.begin(observed(run, answer, context, resumption));
  const fields = watch?.logFields;
  return {
    watch,
    context: fields ? { ...context, log: context.log.child(fields) } : context,
    show: (transcript) => {
      answer.transcript = transcript;
    },
  };
}

function observed(run: Run, answer: LiveAnswer, { time }: RunContext, resumption?: Resumption): ObservedRun {
  const { lease, stored } = resumption ?? {};
  const { traceparent, tracestate } = run.headers;
  return {
    run: run.id,
    wire: run.wire.name,
    model: run.request.model,
    upstream: run.target.name,
    streamed: run.unstreamed !== true,
    resumable: run.resumable,
    created_at_ms: stored?.records[0]?.header?.created_at_ms ?? time.wall(),
    ...(lease && stored && { taken_over: { epoch: lease.epoch, after_event: stored.seq } }),
    ...(typeof traceparent === 'string' && { traceparent }),
    ...(typeof tracestate === 'string' && { tracestate }),
    answer,
  };
}
