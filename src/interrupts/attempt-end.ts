import type { Clock } from './interruption.ts';
import type { ProviderError } from './provider-error.ts';

/** How an attempt ended, as observed; what it means is for `classify()`. */
export type AttemptEnd =
  /** The body ended properly. `done`: after `[DONE]`. `residue`: an error found outside of any event. */
  | { readonly kind: 'eof'; readonly done: boolean; readonly residue?: ProviderError }
  /** The connection failed, or a clock of ours ran out and we closed it. */
  | { readonly kind: 'broken'; readonly code: string; readonly goaway?: number; readonly clock?: Clock }
  /** The provider answered with an error instead of a stream. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly content_type: string;
      /** Set where the body is in a form that was not asked for. */
      readonly content_encoding?: string;
      readonly error: ProviderError | undefined;
      readonly retry_after_ms?: number;
    }
  /** An error inside the stream. */
  | { readonly kind: 'error_event'; readonly error: ProviderError }
  /** A failure dressed as a finish reason. */
  | { readonly kind: 'bad_finish'; readonly reason: string; readonly status: number }
  /** An event that cannot be read, and may have carried a part of the answer. */
  | { readonly kind: 'malformed_event' }
  /** It finished, but what it said cannot be used. */
  | { readonly kind: 'unusable'; readonly what: 'arguments' | 'document' }
  | { readonly kind: 'seam_rejected'; readonly reason: string }
  /** It went with the replica that made it. */
  | { readonly kind: 'replica_lost' }
  /** A limit of ours was reached. */
  | { readonly kind: 'limit'; readonly limit: string };
