import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
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
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import { inTime, type Time } from '../lib/time.ts';
import { VERSION } from '../lib/version.ts';
import type { RunObserver } from '../proxy/run/context/run-observer.ts';
import { RunTrace } from './run-trace.ts';
import type { Sampling, TracingSettings } from './settings.ts';

/** Maximum number of spans waiting for a slow or unreachable receiver; further ones are dropped. */
const QUEUED_SPANS_MAX = 2048;
/** Small, because a batch is serialised in one go, which blocks all runs. */
const BATCH_SPANS_MAX = 128;
const BATCH_WAIT_MS = 1000;
/** Longer than the exporter's own limit including retries. The next batch is then sent in any case. */
const EXPORT_WAIT_MS = 15_000;
/** At the end, everything waiting is sent at once, in addition to exports in progress. */
const UNANSWERED_EXPORTS_MAX = QUEUED_SPANS_MAX / BATCH_SPANS_MAX + 2;
/** How long a receiver may delay the end of the process. */
const FLUSH_MS = 2000;
const SPAN_LIMITS = {
  attributeValueLengthLimit: 256,
  attributeCountLimit: 64,
  attributePerEventCountLimit: 16,
  eventCountLimit: 64,
  linkCountLimit: 0,
};

export interface Tracing {
  /** Observes the runs of one configuration. */
  observerOf(configuration: Pick<Configuration, 'upstreams' | 'tracing'>): RunObserver;
  /** Sends the remaining spans for a limited time. Never rejects. */
  close(): Promise<void>;
}

/** Import this module only if tracing is enabled, because it loads OpenTelemetry. */
export function createTracing(
  { url, headers, sampling, service_name }: TracingSettings,
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
    observerOf: ({ upstreams, tracing: { conversation_ids = false } }) => ({
      begin: ({ conversation, ...run }) =>
        new RunTrace(tracer, upstreams, {
          ...run,
          ...(conversation_ids && conversation !== undefined && { conversation }),
        }),
    }),
    async close() {
      // Failures have been reported by then.
      await inTime(provider.shutdown(), time, FLUSH_MS).catch(() => {});
    },
  };
}

function samplerOf({ byParent, ratio }: Sampling): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return byParent ? new ParentBasedSampler({ root }) : root;
}

/**
 * The resource of the traces. The configured name overrides the environment, which overrides the built-in attributes.
 */
function resourceNamed(service_name: string | undefined): Resource {
  const ours = resourceFromAttributes({ 'service.name': 'holdfast', 'service.version': VERSION });
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  const configured = resourceFromAttributes(
    service_name === undefined ? {} : { 'service.name': service_name },
  );
  return defaultResource().merge(ours).merge(detectResources({ detectors })).merge(configured);
}

/** Limits messages that would otherwise be logged with every batch or every failure of an unstable receiver. */
const QUIET_MS = 60_000;

/** The export result's code for success. */
const SUCCESS = 0;

/** Logs once per outage, rather than per batch, when traces start to be lost and when they no longer are. */
class ReportedExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #log: Logger;
  readonly #time: Time;
  #since_ms: number | undefined;
  #lost = 0;
  /** When an outage was last reported, and whether the current one was. */
  #told_ms = Number.NEGATIVE_INFINITY;
  #isTold = false;

  constructor(exporter: SpanExporter, log: Logger, time: Time) {
    this.#exporter = exporter;
    this.#log = log;
    this.#time = time;
  }

  export(...[spans, done]: Parameters<SpanExporter['export']>): void {
    this.#exporter.export(spans, (result) => {
      if (result.code === SUCCESS) this.#succeeded();
      else this.#failed(result.error, spans.length);
      done(result);
    });
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  #succeeded(): void {
    if (this.#since_ms === undefined) return;
    const outage_ms = Math.round(this.#time.now() - this.#since_ms);
    if (this.#isTold) this.#log.info({ outage_ms, lost_spans: this.#lost }, 'traces are exported again');
    this.#since_ms = undefined;
    this.#isTold = false;
    this.#lost = 0;
  }

  #failed(error: Error | undefined, spans: number): void {
    const now_ms = this.#time.now();
    this.#lost += spans;
    this.#since_ms ??= now_ms;
    if (this.#isTold || now_ms - this.#told_ms < QUIET_MS) return;
    this.#isTold = true;
    this.#told_ms = now_ms;
    this.#log.warn({ err: error }, 'traces cannot be exported: dropping them');
  }
}

/**
 * Logs OpenTelemetry's own diagnostics, which would be lost otherwise, with each warning at most once a minute. Its
 * errors are about lost batches, which {@link ReportedExporter} already reports once per outage.
 */
export function routeDiagnostics(log: Logger, time: Time): void {
  const told_ms = new Map<string, number>();
  const quiet = () => {};
  const logger: DiagLogger = {
    error: (words) => log.debug({ words }, 'OpenTelemetry'),
    warn(words) {
      const warning = words.replaceAll(/\d+/g, 'N');
      const now_ms = time.now();
      const isNews = now_ms - (told_ms.get(warning) ?? Number.NEGATIVE_INFINITY) >= QUIET_MS;
      if (isNews) told_ms.set(warning, now_ms);
      log[isNews ? 'warn' : 'debug']({ words }, 'OpenTelemetry');
    },
    info: quiet,
    debug: quiet,
    verbose: quiet,
  };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}
