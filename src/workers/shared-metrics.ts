import { type Aggregator, AggregatorRegistry, type Registry } from 'prom-client';
import type { Metrics } from '../metrics/metrics.ts';

/** One process's metrics in the form of `Registry.getMetricsAsJSON`. */
export type MetricPart = readonly MetricJson[];

export const partOf = async ({ registry }: Metrics): Promise<MetricPart> =>
  // The library's types are incomplete.
  (await registry.getMetricsAsJSON()) as unknown as MetricPart;

interface MetricJson {
  readonly name: string;
  readonly type: unknown;
  readonly aggregator: Aggregator;
  readonly values?: readonly MetricValue[];
}

interface MetricValue {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, unknown>>;
  readonly value: number;
  readonly exemplar?: { readonly timestamp: number };
}

/**
 * Merges the metrics of a supervisor and its workers. A worker's counts are kept after its end, because a decreasing
 * counter would look like a restart of everything.
 */
export class SharedMetrics {
  readonly #own: () => Promise<MetricPart>;
  /** The latest metrics of each live worker, by its unique number. */
  readonly #latest = new Map<number, MetricPart>();
  /** The sums of everything that departed workers have counted. */
  #departed: MetricPart = [];
  /**
   * The highest sum given of each counted series. Fractions that are added in another order, as after a departure, can
   * give a smaller sum.
   */
  readonly #given = new Map<string, number>();

  /** `own`: reads the supervisor's metrics. */
  constructor(own: () => Promise<MetricPart>) {
    this.#own = own;
  }

  /** Must not be called for a worker that has departed. */
  heard(worker: number, part: MetricPart): void {
    this.#latest.set(worker, part);
  }

  departed(worker: number): void {
    const counted = (this.#latest.get(worker) ?? []).filter(isCounted);
    this.#latest.delete(worker);
    this.#departed = summed([this.#departed, counted]);
  }

  /** The merged metrics, as last heard from each worker. */
  async registry(): Promise<Registry> {
    const parts = [await this.#own(), ...this.#latest.values(), this.#departed].map((part) =>
      part.map((metric) => ({ ...metric, aggregator: togetherOf(metric) })),
    );
    const registry = aggregate(parts);
    this.#neverDecrease(registry);
    keepExemplars(registry, parts);
    return registry;
  }

  #neverDecrease(registry: Registry): void {
    for (const metric of metricsOf(registry).filter(isCounted))
      for (const value of metric.values) {
        const key = keyOf(metric.name, value);
        const sum = Math.max(value.value, this.#given.get(key) ?? 0);
        this.#given.set(key, sum);
        Object.assign(value, { value: sum });
      }
  }
}

const aggregate = (parts: readonly MetricPart[]): Registry =>
  // The library's types expect objects instead of arrays.
  AggregatorRegistry.aggregate(parts as unknown as object[]);

/** The library's types are incomplete. */
const metricsOf = (registry: Registry) =>
  registry.getMetricsAsArray() as unknown as readonly Required<MetricJson>[];

/** Gauges end with their process. */
const isCounted = ({ type }: MetricJson): boolean => type === 'counter' || type === 'histogram';

const summed = (parts: readonly MetricPart[]): MetricPart =>
  (aggregate(parts).getMetricsAsArray() as unknown as readonly { get(): MetricJson }[]).map((metric) =>
    metric.get(),
  );

/** Metrics that only the supervisor has: it reloads all workers together and started before them. */
const OF_SUPERVISOR = /^(holdfast_config_|process_start_time_seconds$)/;

/**
 * How to aggregate a metric, if not as it declares. Event-loop lag takes the maximum, because averaging with the idle
 * supervisor would hide it.
 */
function togetherOf({ name, aggregator }: MetricJson): Aggregator {
  if (OF_SUPERVISOR.test(name)) return 'first';
  return aggregator === 'average' && name.startsWith('nodejs_eventloop_lag_') ? 'max' : aggregator;
}

/** Restores the latest exemplar of each bucket, because the library drops them. */
function keepExemplars(registry: Registry, parts: readonly MetricPart[]): void {
  const latest = new Map<string, NonNullable<MetricValue['exemplar']>>();
  for (const { name, values = [] } of parts.flat())
    for (const value of values) {
      const key = keyOf(name, value);
      const { exemplar } = value;
      if (exemplar && exemplar.timestamp >= (latest.get(key)?.timestamp ?? 0)) latest.set(key, exemplar);
    }
  if (latest.size === 0) return;
  for (const metric of metricsOf(registry))
    for (const value of metric.values) {
      const exemplar = latest.get(keyOf(metric.name, value));
      if (exemplar) Object.assign(value, { exemplar });
    }
}

const keyOf = (name: string, { metricName = name, labels }: MetricValue): string =>
  JSON.stringify([metricName, ...Object.entries(labels).sort()]);
