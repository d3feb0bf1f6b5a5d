import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import { inTime, type Time } from '../lib/time.ts';
import { VERSION } from '../lib/version.ts';
import type { RunObserver } from '../proxy/run/context/run-observer.ts';
import { ReportedExporter, routeDiagnostics } from './export-reports.ts';
import { RunTrace } from './run-trace.ts';
import type { Sampling, TracingSettings } from './settings.ts';

/** What waits for a receiver that is away or slow; what comes on top of it is dropped. */
const QUEUED_SPANS_MAX = 2048;
/** Few, because they are put into JSON in one go, in which no run moves on. */
const BATCH_SPANS_MAX = 128;
const BATCH_WAIT_MS = 1000;
/** More than the exporter gives itself, with all its retries. After that the next batch is sent, whether or not this one was. */
const EXPORT_WAIT_MS = 15_000;
/** At the end all that waits is sent at once, beside what may be under way. */
const UNANSWERED_EXPORTS_MAX = QUEUED_SPANS_MAX / BATCH_SPANS_MAX + 2;
/** How long the end of the process may be held up by a receiver. */
const FLUSH_MS = 2000;
const SPAN_LIMITS = {
  attributeValueLengthLimit: 256,
  attributeCountLimit: 64,
  attributePerEventCountLimit: 16,
  eventCountLimit: 64,
  linkCountLimit: 0,
};

export interface Tracing {
  readonly observer: RunObserver;
  /** Sends what is left, for a limited time. Never rejects. */
  close(): Promise<void>;
}

/** To be loaded only where traces are wanted: it brings OpenTelemetry with it. */
export function createTracing(
  { url, headers, sampling, service_name }: TracingSettings,
  { upstreams }: Configuration,
  log: Logger,
  time: Time,
): Tracing {
  routeDiagnostics(log, time);
  const exporter = new OTLPTraceExporter({
    url,
    headers: { ...headers },
    concurrencyLimit: UNANSWERED_EXPORTS_MAX,
    userAgent: `holdfast/${VERSION}`,
  });
  const processor = new BatchSpanProcessor({
    exporter: new ReportedExporter(exporter, log, time),
    maxQueueSize: QUEUED_SPANS_MAX,
    maxExportBatchSize: BATCH_SPANS_MAX,
    scheduledDelayMillis: BATCH_WAIT_MS,
    exportTimeoutMillis: EXPORT_WAIT_MS,
  });
  const provider = new TracerProvider({
    sampler: samplerOf(sampling),
    resource: resourceNamed(service_name),
    spanLimits: SPAN_LIMITS,
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer('holdfast', VERSION);
  return {
    observer: { begin: (run) => new RunTrace(tracer, upstreams, run) },
    async close() {
      // What goes wrong is reported by then.
      await inTime(provider.shutdown(), time, FLUSH_MS).catch(() => {});
    },
  };
}

function samplerOf({ byParent, ratio }: Sampling): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return byParent ? new ParentBasedSampler({ root }) : root;
}

/** The resource that the traces are of: the configured name wins over the environment, which wins over our own attributes. */
function resourceNamed(service_name: string | undefined): Resource {
  const ours = resourceFromAttributes({ 'service.name': 'holdfast', 'service.version': VERSION });
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  const configured = resourceFromAttributes(
    service_name === undefined ? {} : { 'service.name': service_name },
  );
  return defaultResource().merge(ours).merge(detectResources({ detectors })).merge(configured);
}
