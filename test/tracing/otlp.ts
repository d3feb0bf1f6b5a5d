/** The receiver's view of the traces, in OTLP's JSON. */
export interface ExportedTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly KeyValue[];
  readonly events?: readonly OtlpEvent[];
  readonly status?: { readonly code?: number };
}

interface OtlpEvent {
  readonly name: string;
  readonly timeUnixNano: string;
  readonly attributes?: readonly KeyValue[];
}

interface KeyValue {
  readonly key: string;
  readonly value: Value;
}

interface Value {
  readonly stringValue?: string;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values?: readonly Value[] };
}

type Attribute = string | number | boolean | undefined | readonly Attribute[];
export type AttributeMap = Readonly<Record<string, Attribute>>;

/** A span in the terms of these tests. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'other';
  readonly isError: boolean;
  readonly attributes: AttributeMap;
  /** In order of time. */
  readonly events: readonly { readonly name: string; readonly attributes: AttributeMap }[];
  readonly began_ns: bigint;
  readonly ended_ns: bigint;
  readonly resource: AttributeMap;
}

const KINDS = ['other', 'internal', 'server', 'client'] as const;
const ERROR = 2;

export const spansIn = ({ resourceSpans }: ExportedTraces): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => received(span, attributesOf(resource.attributes)))),
  );

function received(span: OtlpSpan, resource: AttributeMap): ReceivedSpan {
  const { traceId, spanId, parentSpanId = '', name, kind, attributes, events = [], status } = span;
  return {
    ...{ traceId, spanId, parentSpanId, name, resource },
    kind: KINDS[kind] ?? 'other',
    isError: status?.code === ERROR,
    attributes: attributesOf(attributes),
    events: events
      .toSorted((one, other) => Number(BigInt(one.timeUnixNano) - BigInt(other.timeUnixNano)))
      .map((event) => ({ name: event.name, attributes: attributesOf(event.attributes) })),
    began_ns: BigInt(span.startTimeUnixNano),
    ended_ns: BigInt(span.endTimeUnixNano),
  };
}

const attributesOf = (pairs: readonly KeyValue[] = []): AttributeMap =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, plain(value)]));

function plain({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Value): Attribute {
  if (arrayValue) return (arrayValue.values ?? []).map(plain);
  return stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue;
}
