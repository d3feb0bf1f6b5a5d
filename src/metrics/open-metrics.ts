import { type Metric, type OpenMetricsContentType, Registry } from 'prom-client';

/**
 * These metrics in the format that has room for exemplars. They cannot be in a second registry themselves: this format
 * has other names for counters, and the library writes them into the metric, where the older format would find them.
 */
export function openMetricsOf(metrics: readonly Metric[]): Promise<string> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const metric of metrics)
    registry.registerMetric(new View(metric as unknown as Readable) as unknown as Metric);
  return registry.metrics();
}

/** What a registry asks of a metric; the library's types say less, and other, than there is. */
interface Readable {
  readonly name: string;
  get(): Promise<{ readonly name: string; readonly type: string }>;
}

class View implements Readable {
  readonly name: string;
  readonly #metric: Readable;

  constructor(metric: Readable) {
    this.name = metric.name;
    this.#metric = metric;
  }

  async get() {
    const told = await this.#metric.get();
    return told.type === 'counter' ? { ...told, name: told.name.replace(/_total$/, '') } : told;
  }
}

/** Whether a scraper that sends this `Accept` would rather have OpenMetrics than the older text format. */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  const ranges = (accept ?? '').split(',').map(rangeOf);
  const weightOf = (type: string) =>
    Math.max(0, ...ranges.filter((range) => range.type === type).map(({ weight }) => weight));
  const weight = weightOf('application/openmetrics-text');
  return weight > 0 && weight >= weightOf('text/plain');
}

function rangeOf(range: string): { readonly type: string; readonly weight: number } {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const weight = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
  // Another version is another format.
  const isOther = parameters.some((parameter) => /^version=(?!1\.0\.0$)/.test(parameter));
  return { type: isOther && type === 'application/openmetrics-text' ? '' : type, weight };
}
