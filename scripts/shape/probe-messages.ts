/** Questions to the probe. `calls` also resets its counters. */
export type ProbeQuestion = 'calls' | 'instances';

export interface ProbeAnswer {
  readonly calls?: readonly Call[];
  readonly instances?: InstanceCounts;
}

/** A function below src/ that was called at least once. */
export interface Call {
  readonly file: string;
  /** Empty for an anonymous function. */
  readonly name: string;
  /** Offset in characters from the start of the file; type stripping preserves positions. */
  readonly start: number;
  readonly count: number;
}

/** Number of live objects by `<class> in <file>`. */
export type InstanceCounts = Readonly<Record<string, number>>;

/** The parts of V8's heap snapshot that show the class of an object. */
export interface HeapSnapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [readonly string[], ...unknown[]];
      readonly location_fields: readonly ['object_index', 'script_id', 'line', 'column'];
    };
  };
  readonly nodes: readonly number[];
  readonly locations: readonly number[];
  readonly strings: readonly string[];
}
