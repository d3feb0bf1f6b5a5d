import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Names that only the configuration knows: a label that may say one of these is bounded by it. */
export type Configured = 'upstream' | 'provider' | 'model' | 'store';

/** What a label may say: one of these values, or a configured name. Never anything a client or a provider wrote. */
export type LabelValues = readonly string[] | Configured;

export type Labels<Name extends string> = Readonly<Record<Name, LabelValues>>;

type LabelSet<Name extends string> = Readonly<Record<Name, string>>;

/** All series of one name, as the reference describes them. */
export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: Labels<string>;
  readonly buckets?: readonly number[];
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

  /** `only`: the combinations of labels that there are, where not all of them make sense. */
  counter<Name extends string = never>(
    name: string,
    help: string,
    labels = {} as Labels<Name>,
    only?: readonly LabelSet<Name>[],
  ): Counter<Name> {
    const counter = new Counter({ name, help, labelNames: namesOf(labels), registers: [this.registry] });
    this.all.push({ name, type: 'counter', help, labels });
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
    collect?: () => void,
  ): Gauge<Name> {
    this.all.push({ name, type: 'gauge', help, labels });
    return new Gauge({
      name,
      help,
      labelNames: namesOf(labels),
      registers: [this.registry],
      ...(collect && { collect }),
    });
  }

  histogram<Name extends string = never>(
    name: string,
    help: string,
    buckets: readonly number[],
    labels = {} as Labels<Name>,
  ): Histogram<Name> {
    const histogram = new Histogram({
      name,
      help,
      buckets: [...buckets],
      labelNames: namesOf(labels),
      registers: [this.registry],
    });
    this.all.push({ name, type: 'histogram', help, labels, buckets });
    if (namesOf(labels).length > 0)
      this.#zeroed.push({ labels, zero: (set) => histogram.zero(set as LabelSet<Name>) });
    return histogram;
  }

  /** As {@link histogram}; takes `exemplarLabels` with each value, which only OpenMetrics shows. */
  histogramWithExemplars(name: string, help: string, buckets: readonly number[]): Histogram {
    // The library does not let it into a registry of the older format by itself, although that only leaves them out.
    const histogram = new Histogram({
      name,
      help,
      buckets: [...buckets],
      registers: [],
      enableExemplars: true,
    });
    this.registry.registerMetric(histogram);
    this.all.push({ name, type: 'histogram', help, labels: {}, buckets });
    return histogram;
  }

  /** Puts every series whose labels are known to 0. Those of configured names that are not given come when they come. */
  begin(configured: ConfiguredNames): void {
    for (const { labels, only, zero } of this.#zeroed)
      for (const set of only ?? combinations(labels, configured)) zero(set);
  }
}

const namesOf = <Name extends string>(labels: Labels<Name>): Name[] => Object.keys(labels) as Name[];

function combinations(labels: Labels<string>, configured: ConfiguredNames): LabelSet<string>[] {
  return Object.entries(labels).reduce<LabelSet<string>[]>(
    (sets, [name, told]) => {
      const values = typeof told === 'string' ? (configured[told] ?? []) : told;
      return sets.flatMap((set) => values.map((value) => ({ ...set, [name]: value })));
    },
    [{}],
  );
}
