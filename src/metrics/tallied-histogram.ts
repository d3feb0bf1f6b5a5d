/** Values counted elsewhere, by bucket. */
export interface Tally {
  /** Count per bucket, not cumulative. The last one is for values above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly counts: number[];
  sum: number;
}

/** A histogram that takes many values at once. The library's takes them one by one and hashes the labels each time. */
export class TalliedHistogram<Name extends string> {
  readonly name: string;
  readonly #help: string;
  readonly #buckets: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(name: string, help: string, buckets: readonly number[]) {
    this.name = name;
    this.#help = help;
    this.#buckets = buckets;
  }

  /** `counts` must match the buckets of this histogram. */
  add(labels: Readonly<Record<Name, string>>, { counts, sum }: Tally): void {
    const key = JSON.stringify(Object.entries(labels).sort());
    const series = this.#series.get(key) ?? { labels, counts: counts.map(() => 0), sum: 0 };
    this.#series.set(key, series);
    for (const [index, count] of counts.entries()) series.counts[index] = (series.counts[index] ?? 0) + count;
    series.sum += sum;
  }

  /** Called by the library's registry. */
  get() {
    const values = [...this.#series.values()].flatMap((series) => this.#valuesOf(series));
    return Promise.resolve({
      name: this.name,
      help: this.#help,
      type: 'histogram',
      values,
      aggregator: 'sum',
    });
  }

  #valuesOf({ labels, counts, sum }: Series) {
    let count = 0;
    const buckets = counts.map((each, index) => {
      count += each;
      const le = this.#buckets[index] ?? '+Inf';
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}
