import type { AttemptEnd } from '../../interrupts/classify.ts';
import { type ProviderError, providerErrorIn, refusalErrorIn } from '../../interrupts/provider-error.ts';
import { retryAfterMs } from '../../interrupts/retry-after.ts';
import { parsedJson } from '../../lib/json.ts';
import { TransportFailure, type TransportResponse } from './transport.ts';

/** Limit for error bodies. A complete answer instead of a stream may be as large as an event. */
export const ERROR_BODY_BYTES = 1_048_576;

/** The provider's response, if it is not a stream. */
export interface Refusal {
  readonly status: number;
  readonly headers: TransportResponse['headers'];
  readonly body: Uint8Array;
}

export const formOf = ({ status, headers }: Pick<TransportResponse, 'status' | 'headers'>) => ({
  status,
  content_type: String(headers['content-type'] ?? ''),
});

/** Reads a response that isn't a stream, up to the size limit, and closes its connection. */
export async function readRefusal(
  { status, headers, body }: TransportResponse,
  event_bytes: number,
  abort: () => void,
): Promise<Refusal> {
  const limit_bytes = status === 200 ? event_bytes : ERROR_BODY_BYTES;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    await body.consume((piece) => {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes >= limit_bytes) abort();
      return undefined;
    });
  } catch (error) {
    // The status is known, so a truncated body is acceptable.
    if (!(error instanceof TransportFailure)) throw error;
  }
  abort();
  return { status, headers, body: Buffer.concat(pieces) };
}

/** The end of an attempt with this refusal. `wall_ms`: current time, for dates in `retry-after`. */
export function refusedWith(refusal: Refusal, wall_ms: number): AttemptEnd {
  const retry_after_ms = retryAfterMs(refusal.headers, wall_ms);
  return {
    kind: 'refused',
    ...formOf(refusal),
    error: errorIn(refusal.status, parsedJson(new TextDecoder().decode(refusal.body))),
    ...(retry_after_ms !== undefined && { retry_after_ms }),
  };
}

const errorIn = (status: number, body: unknown): ProviderError | undefined =>
  status >= 400 ? refusalErrorIn(body) : providerErrorIn(body);
