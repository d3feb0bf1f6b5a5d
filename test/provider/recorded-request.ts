import type { IncomingHttpHeaders } from 'node:http';
import type { CachedTokens } from './prompt-cache.ts';
import type { Sent } from './telling.ts';

/** A request as it arrived, and its outcome. */
export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  /** The query, with its question mark; empty without one. */
  readonly search: string;
  readonly headers: IncomingHttpHeaders;
  /** Parsed if it is JSON, else the text. */
  readonly body: unknown;
  readonly protocol: 'http/1.1' | 'http/2';
  /** Milliseconds since the Unix epoch. */
  readonly at_ms: number;
  readonly sent: Sent;
  /** 1-based within its run; 0 if no plan answered it. */
  attempt: number;
  /** The prompt tokens that were cached, on the messages wire. */
  cached: CachedTokens | undefined;
  /** When the client left before the answer had ended. */
  aborted_at_ms: number | undefined;
}
