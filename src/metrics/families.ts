import {
  type Aggregator,
  Counter,
  Gauge,
  Histogram,
  type Metric,
  type OpenMetricsContentType,
  Registry,
} from 'prom-client';
import { TalliedHistogram } from './tallied-histogram.ts';

/** Label values that only the configuration defines, which bounds their number. */
type Configured = 'upstream' | 'provider' | 'model' | 'store' | 'address' | 'port';

/** The possible values of a label: this list, or configured names. Never text written by a client or provider. */
type LabelValues = readonly string[] | Configured;

export type Labels<Name extends string> = Readonly<Record<Name, LabelValues>>;

type LabelSet<Name extends string> = Readonly<Record<Name, string>>;

/** All series with one name, as described in the reference. */
interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: Labels<string>;
  readonly buckets?: readonly number[];
}

/** The response to a scraper. */
export interface Exposition {
  readonly type: string;
  readonly body: string;
}

interface GaugeOptions {
  /** Updates the value whenever it is read. */
  readonly collect?: () => void;
  /** How to aggregate it over several processes; the sum by default. */
  readonly together?: Aggregator;
}

interface HistogramOptions {
  /** Each value comes with `exemplarLabels`, which only OpenMetrics shows. */
  readonly hasExemplars?: boolean;
}

/** Configured names, by the kind of label. */
export type ConfiguredNames = Readonly<Partial<Record<Configured, readonly string[]>>>;

interface Zeroed {
  readonly labels: Labels<string>;
  /** Replaces the full set of combinations. */
  readonly only?: readonly LabelSet<string>[];
  zero(labels: LabelSet<string>): void;
}

/**
 * Creates metrics and tracks the possible label values. Known series start at 0, because a counter that appeared with
 * its first increment would lose it: `increase()` only sees changes after the first sample.
 */
export class Families {
  readonly registry = new Registry();
  readonly all: Family[] = [];
  readonly #zeroed: Zeroed[] = [];
  /** The labels of series that were already set to 0, by family, because zeroing a histogram again would reset it. */
  readonly #begun = new Map<Zeroed, Set<string>>();

  /** `only`: the valid combinations of labels, if not all are. */
  counter<Name extends string = never>(
    name: string,
    help: string,
    labels = {} as Labels<Name>,
    only?: readonly LabelSet<Name>[],
  ): Counter<Name> {
    const counter = new Counter<Name>(this.#add({ name, type: 'counter', help, labels }));
    this.#zeroed.push({
      labels,
      ...(only && { only }),
      zero: (set) => counter.inc(set as LabelSet<Name>, 0),
    });
    return counter;
  }

  gauge<Name extends string = never>(
    name: string,
    help: string,
    labels = {} as Labels<Name>,
    { collect, together = 'sum' }: GaugeOptions = {},
  ): Gauge<Name> {
    return new Gauge<Name>({
      ...this.#add({ name, type: 'gauge', help, labels }),
      ...(collect && { collect }),
      aggregator: together,
    });
  }

  histogram<Name extends string = never>(
    name: string,
    help: string,
    buckets: readonly number[],
    labels = {} as Labels<Name>,
    { hasExemplars = false }: HistogramOptions = {},
  ): Histogram<Name> {
    const histogram = new Histogram<Name>({
      ...this.#add({ name, type: 'histogram', help, labels, buckets }),
      buckets: [...buckets],
      enableExemplars: hasExemplars,
      // A registry of the older format, which leaves exemplars out, takes such a histogram, but not from its constructor.
      registers: [],
    });
    this.registry.registerMetric(histogram);
    // Without labels, the library zeroes it itself.
    if (Object.keys(labels).length > 0)
      this.#zeroed.push({ labels, zero: (set) => histogram.zero(set as LabelSet<Name>) });
    return histogram;
  }

  /** Like {@link histogram}, but takes many values at once. A series starts with its first values. */
  talliedHistogram<Name extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labels: Labels<Name>,
  ): TalliedHistogram<Name> {
    this.#add({ name, type: 'histogram', help, labels, buckets });
    const histogram = new TalliedHistogram<Name>(name, help, buckets);
    this.registry.registerMetric(histogram as unknown as Metric);
    return histogram;
  }

  /**
   * Sets every known series that hasn't started yet to 0. Series of configured names that aren't given start with their
   * first value.
   */
  begin(configured: ConfiguredNames): void {
    for (const family of this.#zeroed) {
      const begun = this.#begun.get(family) ?? new Set();
      this.#begun.set(family, begun);
      for (const set of family.only ?? combinations(family.labels, configured)) {
        const key = JSON.stringify(set);
        if (!begun.has(key)) family.zero(set);
        begun.add(key);
      }
    }
  }

  /** Registers a family and returns its options for the library. */
  #add<Name extends string>(family: Family & { readonly labels: Labels<Name> }) {
    this.all.push(family);
    const { name, help, labels } = family;
    return { name, help, labelNames: Object.keys(labels) as Name[], registers: [this.registry] };
  }
}

function combinations(labels: Labels<string>, configured: ConfiguredNames): LabelSet<string>[] {
  return Object.entries(labels).reduce<LabelSet<string>[]>(
    (sets, [name, told]) => {
      const values = typeof told === 'string' ? (configured[told] ?? []) : told;
      return sets.flatMap((set) => values.map((value) => ({ ...set, [name]: value })));
    },
    [{}],
  );
}

/** `accept`: the scraper's `Accept` header. */
export async function expositionOf(registry: Registry, accept: string | undefined): Promise<Exposition> {
  if (!prefersOpenMetrics(accept)) return { type: registry.contentType, body: await registry.metrics() };
  const body = await openMetricsOf(registry.getMetricsAsArray() as unknown as readonly Metric[]);
  return { type: Registry.OPENMETRICS_CONTENT_TYPE, body };
}

/**
 * Converts the metrics to the format that supports exemplars. They can't be in a second registry themselves, because
 * OpenMetrics names counters differently, and the library writes that name into the metric.
 */
export function openMetricsOf(metrics: readonly Metric[]): Promise<string> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const metric of metrics)
    registry.registerMetric(new View(metric as unknown as Readable) as unknown as Metric);
  return registry.metrics();
}

/** What a registry needs from a metric, because the library's types are incomplete and partly wrong. */
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

/** Whether this `Accept` header prefers OpenMetrics to the older text format. */
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
