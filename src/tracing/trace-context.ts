import { createTraceState, isSpanContextValid, type SpanContext, TraceFlags } from '@opentelemetry/api';

/** https://www.w3.org/TR/trace-context-2/: version, trace, parent, flags; later versions may add to it. */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** What a client's headers say of the trace that its request is part of; `undefined` where they say nothing of use. */
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

/** The header by which whoever is asked next continues the trace. */
export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
