/** Orders to the client process and its answers. Each order gets exactly one answer. */
export type ClientOrder =
  | {
      readonly order: 'open';
      readonly port: number;
      /** Added to the headers that every request has. */
      readonly headers: Readonly<Record<string, string>>;
      readonly connections: number;
      /** Connections are opened evenly over this time. */
      readonly ramp_ms: number;
      /**
       * false: one stream per connection. true: one stream after another on each connection, without a pause, until
       * `finish`.
       */
      readonly repeat: boolean;
      readonly interval_us: number;
      /** Grid for the offsets between streams: streams on the same step send at the same moment. */
      readonly arrival_step_us: number;
      readonly events: number;
    }
  /** Ends the current counting window and starts the next. The answer describes the window that ended. */
  | { readonly order: 'mark' }
  /** Answered once every stream has ended. */
  | { readonly order: 'finish' }
  /** Asks for the timings of the windows that ended since the last such order. */
  | { readonly order: 'timings' };

export type ClientAnswer =
  | { readonly answer: 'opened' }
  | ({ readonly answer: 'marked' } & Window)
  | ({ readonly answer: 'finished' } & Outcome)
  | { readonly answer: 'timings'; readonly windows: readonly Timings[] };

export interface Window {
  readonly events: number;
  /** Streams that ended intact within the window. */
  readonly streams: number;
  /** Response bytes, including framing. */
  readonly bytes: number;
  readonly duration_us: number;
}

/** Timings of what arrived within one window. */
export interface Timings {
  /** From the request to the first content. */
  readonly first_token_us: Quantiles;
  /** From the provider's write to the client's read. */
  readonly latency_us: Quantiles;
}

export interface Outcome {
  readonly streams: number;
  /** One description for each stream that didn't arrive whole, in order and to the last byte. */
  readonly broken: readonly string[];
}

/** NaN if nothing was measured. */
export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}
