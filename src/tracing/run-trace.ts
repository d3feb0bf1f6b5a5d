import {
  type Context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Configuration } from '../config/configuration.ts';
import type { Usage } from '../plans/delta.ts';
import type {
  ObservedAttempt,
  ObservedAttemptEnd,
  ObservedEnd,
  ObservedPlan,
  ObservedRecovery,
  ObservedRun,
  RunObservation,
} from '../proxy/run/context/run-observer.ts';
import {
  ATTRIBUTE,
  attemptAttributes,
  EVENT,
  interruptionAttributes,
  planAttributes,
  runAttributes,
  spanName,
} from './attributes.ts';

const ERRORS: ReadonlySet<ObservedEnd['outcome']> = new Set(['failed', 'rejected']);

/** One run as a span with one child per attempt. Contains nothing of the prompt or the answer. */
export class RunTrace implements RunObservation {
  readonly logFields: Readonly<Record<string, string>>;
  readonly #tracer: Tracer;
  readonly #upstreams: Configuration['upstreams'];
  readonly #run: ObservedRun;
  readonly #span: Span;
  readonly #context: Context;
  /**
   * Set if the client sent a `tracestate` without a usable `traceparent`: it belongs to a trace that this run isn't
   * part of.
   */
  readonly #dropsState: boolean;
  #attempt: AttemptTrace | undefined;
  #attempts = 0;
  #error: string | undefined;

  constructor(tracer: Tracer, upstreams: Configuration['upstreams'], run: ObservedRun) {
    const { wire, model, traceparent, tracestate } = run;
    const parent = readTraceContext(traceparent, tracestate);
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
    this.#tracer = tracer;
    this.#upstreams = upstreams;
    this.#run = run;
    this.#dropsState = parent === undefined && tracestate !== undefined;
    this.#span = tracer.startSpan(
      spanName(wire, model),
      { kind: SpanKind.SERVER, attributes: runAttributes(run) },
      context,
    );
    this.#context = trace.setSpan(context, this.#span);
    const { traceId, spanId } = this.#span.spanContext();
    this.logFields = { trace_id: traceId, span_id: spanId };
  }

  attempt(attempt: ObservedAttempt): Readonly<Record<string, string>> {
    this.#attempts++;
    const attributes = attemptAttributes(this.#run, attempt, this.#upstreams[attempt.upstream]);
    const name = spanName(this.#run.wire, attempt.asked_model);
    const span = this.#tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, this.#context);
    this.#attempt = new AttemptTrace(span);
    const traceparent = traceparentOf(span.spanContext());
    return this.#dropsState ? { traceparent, tracestate: '' } : { traceparent };
  }

  answering(): void {
    this.#attempt?.answering();
  }

  attemptEnded(end: ObservedAttemptEnd): void {
    const attempt = this.#attempt;
    this.#attempt = undefined;
    attempt?.end(end);
    const { seam, interruption } = end;
    if (seam !== undefined)
      this.#span.addEvent(EVENT.seam, { [ATTRIBUTE.seam]: seam }, attempt?.answered_at_ms);
    if (interruption) this.#span.addEvent(EVENT.interruption, interruptionAttributes(interruption));
    this.#error = interruption?.cause;
  }

  planned(plan: ObservedPlan): void {
    this.#span.addEvent(EVENT.plan, planAttributes(plan));
  }

  recovered({ plan, mode, gap_ms }: ObservedRecovery): void {
    this.#span.addEvent(EVENT.recovered, {
      [ATTRIBUTE.plan]: plan,
      [ATTRIBUTE.mode]: mode,
      [ATTRIBUTE.gap_ms]: Math.round(gap_ms),
    });
  }

  ended({ outcome, finish }: ObservedEnd): void {
    this.#attempt?.abandon();
    this.#span.setAttributes({
      [ATTRIBUTE.outcome]: outcome,
      [ATTRIBUTE.attempts]: this.#attempts,
      ...(finish !== undefined && { [ATTRIBUTE.finishReasons]: [finish] }),
    });
    if (ERRORS.has(outcome)) {
      this.#span.setAttribute(ATTRIBUTE.errorType, this.#error ?? '_OTHER');
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}

/** The span of one upstream request. */
class AttemptTrace {
  readonly #span: Span;
  readonly #began_ms = performance.now();
  /** When its first content became part of the answer, on the clock of `performance.now()`. */
  answered_at_ms: number | undefined;

  constructor(span: Span) {
    this.#span = span;
  }

  answering(): void {
    this.answered_at_ms = performance.now();
    this.#span.setAttribute(ATTRIBUTE.timeToFirstChunk, (this.answered_at_ms - this.#began_ms) / 1000);
    this.#span.addEvent(EVENT.firstContent);
  }

  end({ outcome, added, seam, interruption, usage, answer_id }: ObservedAttemptEnd): void {
    this.#span.setAttributes({
      [ATTRIBUTE.outcome]: outcome,
      [ATTRIBUTE.added]: added,
      ...(seam !== undefined && { [ATTRIBUTE.seam]: seam }),
      ...(answer_id !== undefined && { [ATTRIBUTE.responseId]: answer_id }),
      ...(usage && usageAttributes(usage)),
    });
    if (interruption) {
      const { cause, status } = interruption;
      this.#span.setAttribute(ATTRIBUTE.errorType, cause);
      if (status !== undefined) this.#span.setAttribute(ATTRIBUTE.status, status);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }

  /** The attempt was abandoned, because the client left or the replica shuts down. */
  abandon(): void {
    this.#span.setAttribute(ATTRIBUTE.outcome, 'abandoned');
    this.#span.end();
  }
}

const usageAttributes = ({ prompt_tokens, completion_tokens }: Usage) => ({
  [ATTRIBUTE.inputTokens]: prompt_tokens,
  [ATTRIBUTE.outputTokens]: completion_tokens,
});

/** https://www.w3.org/TR/trace-context-2/: version, trace, parent, flags. Later versions may append fields. */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The trace context in a client's headers; `undefined` if there is none or it is unusable. */
export function readTraceContext(traceparent = '', tracestate?: string): SpanContext | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  const context: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
    ...(tracestate && { traceState: createTraceState(tracestate) }),
  };
  return isSpanContextValid(context) ? context : undefined;
}

/** The header with which the upstream continues the trace. */
export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
