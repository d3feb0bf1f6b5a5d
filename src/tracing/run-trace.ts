import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Configuration } from '../config/configuration.ts';
import type {
  ObservedAttempt,
  ObservedAttemptEnd,
  ObservedEnd,
  ObservedPlan,
  ObservedRecovery,
  ObservedRun,
  RunObservation,
} from '../proxy/run/context/run-observer.ts';
import { AttemptTrace } from './attempt-trace.ts';
import { ATTRIBUTE, EVENT } from './attribute-names.ts';
import {
  attemptAttributes,
  interruptionAttributes,
  planAttributes,
  runAttributes,
  spanName,
} from './observed-attributes.ts';
import { readTraceContext, traceparentOf } from './trace-context.ts';

const ERRORS: ReadonlySet<ObservedEnd['outcome']> = new Set(['failed', 'rejected']);

/** What becomes of one run here, as a span with one child for each attempt. Never anything of what was asked or said. */
export class RunTrace implements RunObservation {
  readonly logFields: Readonly<Record<string, string>>;
  readonly #tracer: Tracer;
  readonly #upstreams: Configuration['upstreams'];
  readonly #run: ObservedRun;
  readonly #span: Span;
  readonly #context: Context;
  /** What the client says beside a `traceparent` that says nothing belongs to a trace that this one is not part of. */
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
