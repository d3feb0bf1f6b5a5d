/** What the probe can be asked. `calls` also sets its counters back to nothing. */
export type ProbeQuestion = 'calls' | 'instances';

export interface ProbeAnswer {
  readonly calls?: readonly Call[];
  readonly instances?: InstanceCounts;
}

/** A function below src/ that was called, at least once. */
export interface Call {
  readonly file: string;
  /** Empty for a function without a name. */
  readonly name: string;
  /** Where it begins, in characters from the start of the file; type stripping leaves places as they are. */
  readonly start: number;
  readonly count: number;
}

/** Numbers of live objects by `<class> in <file>`. */
export type InstanceCounts = Readonly<Record<string, number>>;

/** The parts of V8's heap snapshot that say which class an object is of. */
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
