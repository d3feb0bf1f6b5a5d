import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { ExportReports } from './export-reports.ts';

type Parameters_ = Parameters<SpanExporter['export']>;

/** Of the results of an export. */
const SUCCESS = 0;

/** Has every export reported. */
export class ReportedExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #reports: ExportReports;

  constructor(exporter: SpanExporter, reports: ExportReports) {
    this.#exporter = exporter;
    this.#reports = reports;
  }

  export(...[spans, done]: Parameters_): void {
    this.#exporter.export(spans, (result) => {
      if (result.code === SUCCESS) this.#reports.succeeded();
      else this.#reports.failed(result.error, spans.length);
      done(result);
    });
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}
