/** Orders to the client process and its answers, one answer each. */
export type ClientOrder =
  | {
      readonly order: 'open';
      readonly port: number;
      readonly streams: number;
      /** The streams are opened evenly over this time. */
      readonly ramp_ms: number;
      readonly interval_us: number;
      /** The grid on which streams are offset from each other: those of one step send at the same moment. */
      readonly arrival_step_us: number;
      readonly events: number;
    }
  /** Ends one window of counting and starts the next; the answer is about the one that ends. */
  | { readonly order: 'mark' }
  /** Answered when every stream has ended. */
  | { readonly order: 'finish' };

export type ClientAnswer =
  | { readonly answer: 'opened' }
  | ({ readonly answer: 'marked' } & Window)
  | ({ readonly answer: 'finished' } & Outcome);

export interface Window {
  readonly events: number;
  /** Of the response, framing included. */
  readonly bytes: number;
  readonly duration_us: number;
}

export interface Outcome {
  /** From the request to the first content. */
  readonly first_token_us: Quantiles;
  /** From the provider's write to the client's read, of the events of the last window. */
  readonly latency_us: Quantiles;
  readonly streams: number;
  /** What was wrong with each stream that did not come whole and in order, to the last byte. */
  readonly broken: readonly string[];
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}
