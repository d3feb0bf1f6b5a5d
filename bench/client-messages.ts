/** Orders to the client process and its answers, one answer each. */
export type ClientOrder =
  | {
      readonly order: 'open';
      readonly port: number;
      /** Beside those of every request. */
      readonly headers: Readonly<Record<string, string>>;
      readonly connections: number;
      /** The connections are opened evenly over this time. */
      readonly ramp_ms: number;
      /** false: one stream on each connection. true: one after the other without a pause, until `finish`. */
      readonly repeat: boolean;
      readonly interval_us: number;
      /** The grid on which streams are offset from each other: those of one step send at the same moment. */
      readonly arrival_step_us: number;
      readonly events: number;
    }
  /** Ends one window of counting and starts the next; the answer is about the one that ends. */
  | { readonly order: 'mark' }
  /** Answered when every stream has ended. */
  | { readonly order: 'finish' }
  /** How long it took in the windows that have ended since this was last asked. */
  | { readonly order: 'timings' };

export type ClientAnswer =
  | { readonly answer: 'opened' }
  | ({ readonly answer: 'marked' } & Window)
  | ({ readonly answer: 'finished' } & Outcome)
  | { readonly answer: 'timings'; readonly windows: readonly Timings[] };

export interface Window {
  readonly events: number;
  /** Those that ended within it, whole. */
  readonly streams: number;
  /** Of the responses, framing included. */
  readonly bytes: number;
  readonly duration_us: number;
}

/** Of what came within one window. */
export interface Timings {
  /** From the request to the first content. */
  readonly first_token_us: Quantiles;
  /** From the provider's write to the client's read. */
  readonly latency_us: Quantiles;
}

export interface Outcome {
  readonly streams: number;
  /** What was wrong with each stream that did not come whole and in order, to the last byte. */
  readonly broken: readonly string[];
}

/** NaN where nothing was measured. */
export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}
