/**
 * Where a fault strikes. `event`: after that many whole events. `within`: in the middle of the one after those.
 * `byte`: after that many bytes of the body, wherever that is. Faults that speak in events of their own round down to the
 * end of an event. `after_finish`: after the event with the finish reason. A place beyond the end is the end.
 */
export type Position =
  | { readonly event: number }
  | { readonly within: number }
  | { readonly byte: number }
  | { readonly after_finish: true };

/** `before_headers`: instead of a response. */
export type PositionOrEarlier = Position | { readonly before_headers: true };

/** The connection breaks. Those with `h2` or `goaway` need HTTP/2, `fin_in_chunk` HTTP/1.1, `tls_cut` TLS. */
export type Cut =
  /** TCP RST. */
  | 'reset'
  /** FIN where the bytes of an announced chunk should be. */
  | 'fin_in_chunk'
  /** RST_STREAM with INTERNAL_ERROR; the session lives on. */
  | 'h2_rst'
  /** GOAWAY with NO_ERROR that disowns no stream, then FIN with the stream open. */
  | 'goaway_0_close'
  /** GOAWAY with INTERNAL_ERROR, then FIN. */
  | 'goaway_error'
  /** FIN without close_notify. */
  | 'tls_cut';

/** The provider says in the stream that it failed, each in a shape of its own. */
export type ErrorEvent =
  /** In the words of the script's accent. */
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

/** A finish reason that is none, then `[DONE]`. */
export type BadFinish = 'finish_insufficient_system_resource' | 'finish_abort' | 'finish_overloaded_error';

export type Fault =
  | { readonly kind: Cut; readonly at: PositionOrEarlier }
  /** The body ends as it should, but too early: at once, or with `[DONE]`. */
  | { readonly kind: 'clean_eof' | 'done_without_finish'; readonly at: Position }
  | { readonly kind: ErrorEvent; readonly at: Position; readonly retry_after_s?: number }
  | { readonly kind: BadFinish; readonly at: Position }
  /** One event that does not parse, or this one (as it is on the wire); the rest of the answer follows. */
  | { readonly kind: 'malformed_event'; readonly at: Position; readonly event?: string }
  /** GOAWAY with NO_ERROR in mid-stream; the stream completes. */
  | { readonly kind: 'goaway_graceful'; readonly at: Position }
  /** Nothing, or only signs of life, for ever or for `for_ms`; then the rest of the answer follows. */
  | { readonly kind: 'silence'; readonly at: PositionOrEarlier; readonly for_ms?: number }
  | {
      /** `comments`: `: keep-alive`. `pings`: chunks with an empty delta, or Anthropic's `event: ping`. */
      readonly kind: 'comments' | 'pings';
      readonly at: Position;
      readonly every_ms?: number;
      readonly for_ms?: number;
      readonly shape?: 'chunk' | 'event';
      /** After `for_ms`, in place of the rest. */
      readonly cut?: Cut;
    }
  /** An answer that is no stream. A body that is not a string is sent as JSON. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: unknown;
    }
  /** 200 with xAI's JSON error, or with a gateway's login page, instead of an event stream. */
  | { readonly kind: 'json_200' | 'html_200' };
