/** Why an attempt ended early. The first five are recoverable; the others are permanent. */
export const CAUSES = [
  'connection_reset',
  'idle_stall',
  'goaway',
  'provider_5xx',
  'rate_limited',
  'context_overflow',
  'invalid_request',
  'unauthorised',
  'model_not_found',
  'content_filter',
  'quota',
] as const;
export type Cause = (typeof CAUSES)[number];

const TRANSIENT: ReadonlySet<Cause> = new Set([
  'connection_reset',
  'idle_stall',
  'goaway',
  'provider_5xx',
  'rate_limited',
]);

export const isPermanent = (cause: Cause): boolean => !TRANSIENT.has(cause);

/**
 * Where in the attempt it happened. `connect`: no response yet. `first_token`: a response without content. `reasoning`,
 * `text`, `tool_call`: after a delta of that kind. `eof`: the body ended cleanly without terminal evidence.
 */
export const PHASES = ['connect', 'first_token', 'reasoning', 'text', 'tool_call', 'eof'] as const;
export type Phase = (typeof PHASES)[number];

/**
 * The clocks that can expire during an attempt; `clocks.*_ms` in the configuration sets their limits. `hedge`: another
 * target was asked as well, and answered first.
 */
export const CLOCKS = [
  'connect',
  'first_byte',
  'first_token',
  'idle',
  'progress',
  'attempt',
  'hedge',
] as const;
export type Clock = (typeof CLOCKS)[number];

/** What was actually observed. `code` is an error code such as `ECONNRESET`, never a message. */
export type Evidence =
  | { readonly kind: 'transport'; readonly code: string }
  | { readonly kind: 'goaway'; readonly code: number }
  | { readonly kind: 'clean_eof'; readonly done: boolean }
  | { readonly kind: 'clock'; readonly clock: Clock }
  | { readonly kind: 'status'; readonly status: number }
  | { readonly kind: 'not_a_stream'; readonly content_type: string; readonly content_encoding?: string }
  | { readonly kind: 'error_event'; readonly type: string }
  | { readonly kind: 'finish_reason'; readonly reason: string }
  | { readonly kind: 'malformed_event' }
  | { readonly kind: 'unparsable_arguments' }
  | { readonly kind: 'unparsable_document' }
  | { readonly kind: 'seam_rejected'; readonly reason: string }
  /** The replica that delivered the run stopped sending heartbeats, or had shut down. */
  | { readonly kind: 'replica_lost' }
  | { readonly kind: 'limit'; readonly limit: string };

export interface Interruption {
  readonly cause: Cause;
  readonly phase: Phase;
  readonly evidence: Evidence;
  /** The provider's real HTTP status where one is known: 429, 500, 502, 503, 504, 529, … */
  readonly status?: number;
  /** The provider's own message, for the log and the client's error; never used for decisions. */
  readonly message?: string;
  /** How long the provider asked us to wait, in milliseconds. Not yet capped. */
  readonly retry_after_ms?: number;
}

/** The operating system's codes for a connection that could not be made. */
const UNREACHED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** No connection was made, so the provider has not seen the request. */
export function isUnreached({ evidence }: Interruption): boolean {
  if (evidence.kind === 'clock') return evidence.clock === 'connect';
  return evidence.kind === 'transport' && UNREACHED.has(evidence.code);
}

/** An interruption that is safe to log and export: the message may quote the prompt or the key. */
export type ObservedInterruption = Omit<Interruption, 'message'>;

export function withoutMessage({ message: _, ...observed }: Interruption): ObservedInterruption {
  return observed;
}
