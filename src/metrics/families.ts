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

/** Names that only the configuration knows: a label that may say one of these is bounded by it. */
type Configured = 'upstream' | 'provider' | 'model' | 'store' | 'address' | 'port';

/** What a label may say: one of these values, or a configured name. Never anything a client or a provider wrote. */
type LabelValues = readonly string[] | Configured;

export type Labels<Name extends string> = Readonly<Record<Name, LabelValues>>;

type LabelSet<Name extends string> = Readonly<Record<Name, string>>;

/** All series of one name, as the reference describes them. */
interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: Labels<string>;
  readonly buckets?: readonly number[];
}

/** What a scraper is answered. */
export interface Exposition {
  readonly type: string;
  readonly body: string;
}

interface GaugeOptions {
  /** Sets it whenever it is read. */
  readonly collect?: () => void;
  /** What it is of several processes together; by default the sum of theirs. */
  readonly together?: Aggregator;
}

interface HistogramOptions {
  /** Each value comes with `exemplarLabels`, which only OpenMetrics shows. */
  readonly hasExemplars?: boolean;
}

/** Configured names, by the label that says them. */
export type ConfiguredNames = Readonly<Partial<Record<Configured, readonly string[]>>>;

interface Zeroed {
  readonly labels: Labels<string>;
  /** Instead of every combination. */
  readonly only?: readonly LabelSet<string>[];
  zero(labels: LabelSet<string>): void;
}

/**
 * Makes metrics and remembers what their labels may say. A counter that appeared with its first increment would lose it:
 * `increase()` sees only what comes after the first sample. So what can be counted is there from the beginning, at 0.
 */
export class Families {
  readonly registry = new Registry();
  readonly all: Family[] = [];
  readonly #zeroed: Zeroed[] = [];
  /** The labels of series that were put to 0, by family: a histogram that counts already would begin anew. */
  readonly #begun = new Map<Zeroed, Set<string>>();

  /** `only`: the combinations of labels that there are, where not all of them make sense. */
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

  /** As {@link histogram}; takes many values at once. Its series begin with their first values. */
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
   * Puts every series whose labels are known, and were not before, to 0. Those of configured names that are not given come
   * when they come.
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

  /** Remembers a family; returns what the library is to know of it. */
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

/** `accept`: what the scraper says that it takes. */
export async function expositionOf(registry: Registry, accept: string | undefined): Promise<Exposition> {
  if (!prefersOpenMetrics(accept)) return { type: registry.contentType, body: await registry.metrics() };
  const body = await openMetricsOf(registry.getMetricsAsArray() as unknown as readonly Metric[]);
  return { type: Registry.OPENMETRICS_CONTENT_TYPE, body };
}

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
