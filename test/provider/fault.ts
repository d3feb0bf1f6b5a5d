/**
 * Where a fault strikes. `event`: after this many whole events. `within`: in the middle of the event after those.
 * `byte`: after this many bytes of the body, wherever that is; faults that send their own events round down to the end
 * of an event. `after_finish`: after the event with the finish reason. A place beyond the end means the end.
 */
export type Position =
  | { readonly event: number }
  | { readonly within: number }
  | { readonly byte: number }
  | { readonly after_finish: true };

/** `before_headers`: instead of a response. */
export type PositionOrEarlier = Position | { readonly before_headers: true };

/**
 * The connection breaks. Kinds with `h2` or `goaway` need HTTP/2, `fin_in_chunk` needs HTTP/1.1, and `tls_cut` needs
 * TLS.
 */
export type Cut =
  /** TCP RST. */
  | 'reset'
  /** FIN in place of the bytes of an announced chunk. */
  | 'fin_in_chunk'
  /** RST_STREAM with INTERNAL_ERROR; the session stays open. */
  | 'h2_rst'
  /** GOAWAY with NO_ERROR that rejects no stream, then FIN while the stream is open. */
  | 'goaway_0_close'
  /** GOAWAY with INTERNAL_ERROR, then FIN. */
  | 'goaway_error'
  /** FIN without close_notify. */
  | 'tls_cut';

/** The provider reports a failure within the stream; each kind has its own shape. */
export type ErrorEvent =
  /** In the format of the script's accent. */
  | 'error_own'
  | 'error_openai'
  | 'error_openrouter'
  | 'error_vllm'
  | 'error_tgi'
  | 'error_ollama'
  | 'error_gemini'
  | 'error_anthropic'
  | 'error_string'
  | 'error_rate_limited'
  | 'error_quota';

/** A finish reason that means failure, then `[DONE]`. */
export type BadFinish = 'finish_insufficient_system_resource' | 'finish_abort' | 'finish_overloaded_error';

export type Fault =
  | { readonly kind: Cut; readonly at: PositionOrEarlier }
  /** The body ends properly but too early: at once, or with `[DONE]`. */
  | { readonly kind: 'clean_eof' | 'done_without_finish'; readonly at: Position }
  | { readonly kind: ErrorEvent; readonly at: Position; readonly retry_after_s?: number }
  | { readonly kind: BadFinish; readonly at: Position }
  /** One event that doesn't parse, or `event` verbatim; the rest of the answer follows. */
  | { readonly kind: 'malformed_event'; readonly at: Position; readonly event?: string }
  /** GOAWAY with NO_ERROR in mid-stream; the stream completes. */
  | { readonly kind: 'goaway_graceful'; readonly at: Position }
  /** Silence, or only signs of life, for ever or for `for_ms`, after which the rest of the answer follows. */
  | { readonly kind: 'silence'; readonly at: PositionOrEarlier; readonly for_ms?: number }
  | {
      /** `comments`: `: keep-alive`. `pings`: chunks with an empty delta, or Anthropic's `event: ping`. */
      readonly kind: 'comments' | 'pings';
      readonly at: Position;
      readonly every_ms?: number;
      readonly for_ms?: number;
      readonly shape?: 'chunk' | 'event';
      /** Breaks the connection after `for_ms`, in place of the rest. */
      readonly cut?: Cut;
    }
  /** A response that isn't a stream. A body that isn't a string is sent as JSON. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: unknown;
    }
  /** A 200 with xAI's JSON error, or a gateway's login page, in place of an event stream. */
  | { readonly kind: 'json_200' | 'html_200' };
