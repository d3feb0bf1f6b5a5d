import { type Aggregator, AggregatorRegistry, type Registry } from 'prom-client';
import type { Metrics } from '../metrics/metrics.ts';

/** The metrics of one process as `Registry.getMetricsAsJSON` has them. */
export type MetricPart = readonly MetricJson[];

export const partOf = async ({ registry }: Metrics): Promise<MetricPart> =>
  // The library's types say less than there is.
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
 * The metrics of a supervisor and its workers as those of one process. What a worker has counted stays after its end: a
 * counter that decreased would look like a restart of everything.
 */
export class SharedMetrics {
  readonly #own: () => Promise<MetricPart>;
  /** The last of each worker that lives, by a number of its own. */
  readonly #latest = new Map<number, MetricPart>();
  /** Everything that workers have counted that live no more. */
  #departed: MetricPart = [];

  /** `own`: those of the supervisor. */
  constructor(own: () => Promise<MetricPart>) {
    this.#own = own;
  }

  /** A worker that has departed has nothing more to say. */
  heard(worker: number, part: MetricPart): void {
    this.#latest.set(worker, part);
  }

  departed(worker: number): void {
    const counted = (this.#latest.get(worker) ?? []).filter(isCounted);
    this.#latest.delete(worker);
    this.#departed = summed([this.#departed, counted]);
  }

  /** As of the last time that each of them was heard. */
  async registry(): Promise<Registry> {
    const parts = [await this.#own(), ...this.#latest.values(), this.#departed].map((part) =>
      part.map((metric) => ({ ...metric, aggregator: togetherOf(metric) })),
    );
    const registry = aggregate(parts);
    keepExemplars(registry, parts);
    return registry;
  }
}

const aggregate = (parts: readonly MetricPart[]): Registry =>
  // The library's types call the parts objects.
  AggregatorRegistry.aggregate(parts as unknown as object[]);

/** A gauge is gone with its process. */
const isCounted = ({ type }: MetricJson): boolean => type === 'counter' || type === 'histogram';

const summed = (parts: readonly MetricPart[]): MetricPart =>
  (aggregate(parts).getMetricsAsArray() as unknown as readonly { get(): MetricJson }[]).map((metric) =>
    metric.get(),
  );

/** Nothing but the supervisor knows: it reloads the workers together, and was there before them. */
const OF_SUPERVISOR = /^(holdfast_config_|process_start_time_seconds$)/;

/** What a metric is of several processes, where it is not as the metric says: the supervisor is idle, and no average of theirs. */
function togetherOf({ name, aggregator }: MetricJson): Aggregator {
  if (OF_SUPERVISOR.test(name)) return 'first';
  return aggregator === 'average' && name.startsWith('nodejs_eventloop_lag_') ? 'max' : aggregator;
}

/** The library drops them: puts the latest one of each bucket back. */
function keepExemplars(registry: Registry, parts: readonly MetricPart[]): void {
  const latest = new Map<string, NonNullable<MetricValue['exemplar']>>();
  for (const { name, values = [] } of parts.flat())
    for (const value of values) {
      const key = keyOf(name, value);
      const { exemplar } = value;
      if (exemplar && exemplar.timestamp >= (latest.get(key)?.timestamp ?? 0)) latest.set(key, exemplar);
    }
  if (latest.size === 0) return;
  for (const metric of registry.getMetricsAsArray() as unknown as readonly Required<MetricJson>[])
    for (const value of metric.values) {
      const exemplar = latest.get(keyOf(metric.name, value));
      if (exemplar) Object.assign(value, { exemplar });
    }
}

const keyOf = (name: string, { metricName = name, labels }: MetricValue): string =>
  JSON.stringify([metricName, ...Object.entries(labels).sort()]);
