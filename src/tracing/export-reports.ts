import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { Time } from '../lib/time.ts';

/** What would be logged with every batch, or with every failure of an unsteady receiver, is logged this often at most. */
const QUIET_MS = 60_000;

/** Of the results of an export. */
const SUCCESS = 0;

/** Tells the operator when traces begin to be lost and when they no longer are: once per outage, not per batch. */
export class ReportedExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #log: Logger;
  readonly #time: Time;
  #since_ms: number | undefined;
  #lost = 0;
  /** When an outage was last reported, and whether the present one was. */
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
    this.#log.warn({ err: error }, 'traces cannot be exported: they are lost until they can');
  }
}

/**
 * Logs what OpenTelemetry reports, which would be lost otherwise: each of its warnings once a minute at most. Its errors
 * are batches that were lost, which {@link ReportedExporter} logs once per outage.
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
